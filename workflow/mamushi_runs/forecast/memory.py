"""What a model takes of a GPU's memory, and over how many GPUs it is cut for that: see
``mamushi.lm.sharding``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mamushi.configuration import grid
from mamushi.configuration.grid import Config
from mamushi.errors import UserError
from mamushi_runs.forecast import sizes
from mamushi_runs.forecast.sizes import Size

FROZEN, TRAINED = 2, 16
"""Bytes of a parameter: in bf16; and in fp32 with its gradient and two moments."""
COPY, WEIGHT, GRADIENT = 2, 4, 4
"""Bytes of a trained parameter while a step computes: a copy in bf16 for the products; and where it
is cut, the whole weight and its whole gradient, in fp32."""
LINK = 2e11
"""Bytes a second that each GPU of a node gets from the others: assumed, half of what NVLink of an
H100 has on paper."""
FULL = 0.75
"""Share of a GPU's memory that weights may take; the rest is for activations and logits."""
COUNTS = (1, 2, 4, 8)
"""GPUs of a job, of one node."""


def resident(size: Size, training: Mapping[str, Any], gpus: int) -> float:
    """Return bytes on each of so many GPUs between two steps of a fine-tune, gradients included."""
    trained = size.trained(training)
    # Adapters come on top of all parameters; what else is trained is of them.
    frozen = size.parameters - (0 if training["method"] == "lora" else trained)
    return (FROZEN * frozen + TRAINED * trained) / gpus


def needed(size: Size, training: Mapping[str, Any], gpus: int) -> float:
    """Return bytes on each of so many GPUs in a step of a fine-tune, but for activations."""
    step = COPY * size.trained(training)
    if gpus > 1:
        # What lies outside the blocks is whole for a pass, and of the blocks two, of which one is
        # fetched while the other computes.
        tables = size.embedding * (1 if size.tied else 2)
        how = training["method"]
        both = training["train_input_embedding"] or training["train_output_head"]
        outside = how == "full" or (how == "partial" and both)
        step += tables * (WEIGHT + GRADIENT if outside else FROZEN)
        blocks = how == "full" or (how == "partial" and training["trained_blocks"] > 0)
        step += 2 * size.block * (WEIGHT + GRADIENT if blocks else FROZEN)
    return resident(size, training, gpus) + step


def exchange(size: Size, training: Mapping[str, Any], gpus: int) -> float:
    """Return seconds in which each of so many GPUs gets what it lacks, in a step of a training:
    weights before both of its passes, and of what is trained the sums of gradients. The smaller a
    step, the less of this can happen while it computes; none of it is taken to."""
    if gpus == 1:
        return 0.0
    trained = size.trained(training)
    frozen = size.parameters - (0 if training["method"] == "lora" else trained)
    weights = FROZEN * frozen + WEIGHT * trained
    return (2 * weights + GRADIENT * trained) * (gpus - 1) / gpus / LINK


def gpus(config: Config, model: str) -> int:
    """Return GPUs of a job with this model: as configured, else the fewest that hold it, at most 8.

    1 for what is tiny or no language model. A model that retrains another one's weights, and that
    one, have as many.
    """
    configured = config["execution"]["gpus_per_job"]
    if grid.is_tiny(config, model) or grid.no_language_model(config, model):
        return 1
    if configured != "auto":
        return int(configured)
    base = config["models"][model].get("base")
    family = {model, base or model}
    family |= {name for name, other in config["models"].items() if other.get("base") in family}
    return max(_fits(config, name) for name in sorted(family))


def several(config: Config) -> dict[str, int]:
    """Return GPUs of a job by model, of the models whose jobs have more than one.

    Raises ``UserError`` where lm-evaluation-harness, which knows no model that is cut, would be
    given one.
    """
    found = {model: count for model in config["models"] if (count := gpus(config, model)) > 1}
    if config["utility"]["tasks"]:
        for model in grid.probed(config)["models"]:
            if model in found:
                raise UserError(
                    f"{model} is cut over {found[model]} GPUs, and lm-evaluation-harness asks "
                    "models that one GPU holds",
                    where="utility.tasks",
                    do="leave it empty, or set execution.gpus_per_job to 1",
                )
    return found


def _fits(config: Config, model: str) -> int:
    size, training = sizes.of(config, model), config["models"][model]["training"]
    most = FULL * config["execution"]["gpu_memory"] * 1e9
    enough = (count for count in COUNTS if needed(size, training, count) <= most)
    return next(enough, COUNTS[-1])
