"""How large a model is, before it is opened: from JSON and file sizes alone; what it takes of a
GPU's memory, and over how many GPUs it is cut for that (see ``mamushi.lm.sharding``).

Memory, time limits and the plan depend on it, and a dry run knows models that are not there yet.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mamushi.config import grid
from mamushi.config.grid import Config
from mamushi.config.sources import is_gguf
from mamushi.io import paths
from mamushi_runs.rates import TABLE

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


@dataclass(frozen=True)
class Size:
    """Numbers of parameters of a decoder-only model, and the sizes behind them."""

    parameters: int
    """All of them; a head that is tied to the input embedding counts once."""
    hidden_size: int
    layers: int
    vocabulary_size: int
    tied: bool
    source: str
    """Where this is from, for people."""

    @property
    def billions(self) -> float:
        return self.parameters / 1e9

    @property
    def embedding(self) -> int:
        """Parameters of the input embedding, and as many of the output head."""
        return self.vocabulary_size * self.hidden_size

    @property
    def block(self) -> int:
        """Parameters of one transformer block: what is neither embedding, head nor final norm."""
        tables = self.embedding * (1 if self.tied else 2)
        return max(0, self.parameters - tables - self.hidden_size) // self.layers

    @property
    def multiplied(self) -> int:
        """Parameters that every token is multiplied with: all but the input embedding, whose rows
        are looked up. A tied one is multiplied with, as the head."""
        return self.parameters - (0 if self.tied else self.embedding)

    def adapters(self, training: Mapping[str, Any]) -> int:
        """Return parameters of low-rank adapters beside all matrices of the blocks: the rank times
        the sum of each one's height and width. Four square ones make up attention, and three of the
        rest of a block the MLP; grouped keys and a choice of layers have less."""
        hidden = self.hidden_size
        wide = max(0, self.block - 4 * hidden**2) // (3 * hidden)
        around = 4 * 2 * hidden + 3 * (hidden + wide)
        return int(training["lora"]["rank"]) * self.layers * around

    def trained(self, training: Mapping[str, Any]) -> int:
        """Return how many ``training`` trains; see ``mamushi.lm.parameters.trained_names``."""
        if training["method"] == "full":
            return self.parameters
        if training["method"] == "lora":
            return self.adapters(training)
        count = min(int(training["trained_blocks"]), self.layers) * self.block
        inputs, head = training["train_input_embedding"], training["train_output_head"]
        tables = int(inputs or head) if self.tied else int(inputs) + int(head)
        return count + tables * self.embedding

    def frozen(self, training: Mapping[str, Any]) -> int:
        """Return how many ``training`` leaves as they are; adapters come on top of all."""
        lora = training["method"] == "lora"
        return self.parameters - (0 if lora else self.trained(training))


def of(config: Config, model: str, root: str | os.PathLike[str] = ".") -> Size:
    """Return the size of a configured model; ``root`` is the folder with ``results``. From the
    first of these that there is: a tiny model's definition, its card, the weights in its folder,
    the published sizes of the paper's models, a number in its name ("-7b"), the size of its GGUF
    file. What is none of these is taken for 8 billion, and ``source`` says so."""
    definition = config["models"][model]
    if definition.get("family") is not None:
        return _tiny(definition)
    if grid.no_language_model(config, model):
        return _like(3e8, "assumed to be as wide as vectors of sentence encoders are")
    source = str(definition.get("source") or "")
    card = _json(Path(root, paths.MODEL_CARD.format(model=model)))
    names = ("parameters", "hidden_size", "layers", "vocabulary_size")
    if all(isinstance(card.get(name), int) for name in names):
        found: list[Any] = [*(card[name] for name in names), bool(card.get("tied")), "its card"]
        return Size(*found)
    gguf = is_gguf(definition)
    files = _from_files(Path(source), gguf) if source else None
    name = _from_name(source, model)
    assumed = _like(8e9, "assumed to have 8 billion parameters")
    return (name or files or assumed) if gguf else (files or name or assumed)


def _tiny(given: Mapping[str, Any]) -> Size:
    """Return a model of ``mamushi.lm.tiny``, with gated MLPs and grouped queries; biases and norms,
    a thousandth, are left out."""
    hidden, layers, vocabulary = (given[x] for x in ("hidden_size", "layers", "vocabulary_size"))
    grouped = given["key_value_heads"] / given["heads"]
    block = int(2 * hidden**2 * (1 + grouped)) + 3 * hidden * given["intermediate_size"]
    tied = given["family"] != "llama"
    total = layers * block + vocabulary * hidden * (1 if tied else 2) + hidden
    return Size(total, hidden, layers, vocabulary, tied, "its definition")


def _json(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file; empty without one, since a plan must not fail on what a job
    will complain about in better words."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _from_files(source: Path, gguf: bool) -> Size | None:
    """Return a size by that of the weights, of which a GGUF file has 4 bits each; their shape is
    known when a job has opened them."""
    index = _json(source / "model.safetensors.index.json")
    names = set(index.get("weight_map", {}).values()) or {"model.safetensors"}
    config = _json(source / "config.json")
    half = str(config.get("dtype") or config.get("torch_dtype")).endswith("float16")
    each = 0.5 if gguf else 2 if half else 4
    try:
        files = [source] if gguf else [source / name for name in names]
        return _like(sum(path.stat().st_size for path in files) / each, "its weights")
    except OSError:
        return None


def _from_name(source: str, model: str) -> Size | None:
    """Return a published size; else that of "7b", "360m" or "8x7b" as a word of a name."""
    names = source.rpartition("/")[2].lower(), model.lower()
    for name in names:
        # An instruction-tuned version is as large, and so is `qwen-2.5-7b`.
        plain = name.replace("qwen-", "qwen").removesuffix("-instruct").removesuffix("-it")
        if plain in TABLE["models"]:
            return Size(*[*TABLE["models"][plain], f"published sizes of {plain}"])
    for name in names:
        found = re.search(r"(?<![a-z0-9.])(?:(\d+)x)?(\d+(?:\.\d+)?)([bm])(?![a-z0-9])", name)
        total = found and int(found[1] or 1) * float(found[2]) * (1e9 if found[3] == "b" else 1e6)
        if found and total:
            return _like(total, f'"{found[0]}" in its name')
    return None


def _like(parameters: float, source: str) -> Size:
    """Return a model of so many parameters, shaped as Llama 3.1 is: width and depth grow alike.
    Small ones have tied embeddings, as most have that are published."""
    scale = (parameters / 8.03e9) ** (1 / 3)
    hidden = max(64, round(4096 * scale / 64) * 64)
    vocabulary = max(1, min(128256, int(parameters / 4 / hidden)))
    return Size(
        int(parameters), hidden, max(1, round(32 * scale)), vocabulary, parameters < 4e9, source
    )


# On GPUs ------------------------------------------------------------------------------------------


def resident(size: Size, training: Mapping[str, Any], gpus: int) -> float:
    """Return bytes on each of so many GPUs between two steps of a fine-tune, gradients included."""
    return (FROZEN * size.frozen(training) + TRAINED * size.trained(training)) / gpus


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
    trained = size.trained(training)
    weights = FROZEN * size.frozen(training) + WEIGHT * trained
    return (2 * weights + GRADIENT * trained) * (gpus - 1) / gpus / LINK


def gpus(config: Config, model: str) -> int:
    """Return GPUs of a job with this model: as configured, else the fewest that hold it, at most 8.
    1 for what is tiny or no language model. A model that retrains another one's weights, and that
    one, have as many."""
    configured = config["execution"]["gpus_per_job"]
    if grid.is_tiny(config, model) or grid.no_language_model(config, model):
        return 1
    if configured != "auto":
        return int(configured)
    base = config["models"][model].get("base")
    family = {model, base or model}
    family |= {name for name, other in config["models"].items() if other.get("base") in family}
    most = FULL * config["execution"]["gpu_memory"] * 1e9

    def fits(name: str) -> int:
        size, training = of(config, name), config["models"][name]["training"]
        enough = (count for count in COUNTS if needed(size, training, count) <= most)
        return next(enough, COUNTS[-1])

    return max(map(fits, family))


def several(config: Config) -> dict[str, int]:
    """Return GPUs of a job by model, of the models whose jobs have more than one."""
    return {model: count for model in config["models"] if (count := gpus(config, model)) > 1}
