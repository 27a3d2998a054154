"""How the stages open a model, and what they share of its work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mamushi.config.sections import Lora, Method
from mamushi.config.settings import Settings, setting
from mamushi.rooms import additions
from mamushi.running.stage import Job

if TYPE_CHECKING:
    from accelerate import Accelerator
    from transformers import PreTrainedModel

    from mamushi.io.schemas import Table


class Cell(Settings):
    """A dataset, a model and a seed."""

    dataset: str
    model: str
    seed: int

    @property
    def cell(self) -> dict[str, Any]:
        """Return the wildcards of the cell's folder, and the first columns of its tables."""
        return {"dataset": self.dataset, "model": self.model, "seed": self.seed}


class Trains(Settings, Method):
    """What unlearning trains, ``trained_blocks`` by the method ``partial`` alone."""

    method: Literal["partial", "lora", "full"] = setting(
        "models.{model}.training.method", default="partial"
    )
    lora: Lora = setting("models.{model}.training.lora", default=Lora())
    trained_blocks: int = setting("unlearning.trained_blocks")


class OpenedArm(Settings):
    """How any model of a cell is opened: in which precision."""

    precision: str = setting("models.{model}.training.precision")


def open_arm(
    model_card: Path,
    trained: Path | None,
    unlearned: Path | None,
    precision: str,
    trains: Trains | None = None,
    seed: int = 0,
) -> tuple[PreTrainedModel, Accelerator]:
    """Return any model of a cell on its device in eval mode, as it was at the end of its training,
    and its accelerator: with ``trained`` laid over its base and, where it was unlearned,
    ``unlearned`` over both.

    Where it is trained further, gradients are on for the last ``trained_blocks`` alone, which
    lie in fp32, and so does all that was trained before, as it does when the start and the gold
    standard are measured: rounded to the forward precision it would be another model than the one
    at which the scale of recovery has its zero. The methods ``lora`` and ``full`` go on with what
    was trained: its adapters, or new ones where it has none, and all parameters.
    """
    from mamushi.lm import device
    from mamushi.lm.loading import open_placed
    from mamushi.lm.parameters import freeze, last_blocks

    def prepare(model: PreTrainedModel) -> None:
        if trains and trains.method == "partial":
            last_blocks(model, trains.trained_blocks).requires_grad_(True)
        elif trains:
            freeze(model, asdict(trains))

    device.reproducible(seed)
    accelerator = device.accelerator(precision)
    stored = [path for path in (trained, unlearned) if path]
    model = open_placed(model_card, stored, precision, accelerator, prepare)
    if trains:
        untrained = dict.fromkeys(("train_input_embedding", "train_output_head"), False)
        freeze(model, {**untrained, **asdict(trains)})
    return model, accelerator


def state_of(card: Path) -> Path:
    """Return the checkpoint from which a killed training goes on; deleted when all is written, of a
    retrained model when it has been measured."""
    return card.with_name(f"{card.name}.state")


def record_training(
    log_table: Path,
    card: Path,
    schema: Table,
    log: Mapping[str, Any],
    counts: Mapping[str, Any],
    job: Job,
    *,
    keeps_state: bool = False,
) -> None:
    """Write the step log, and the card in the place of what an earlier training left; then delete
    the state to go on from, last, so that a kill before still has it. Or keep it for who measures
    the model in the same job of a cluster: where that fails, Snakemake deletes the model as well
    (a group is one job), and the next attempt goes on from there."""
    from mamushi.io.files import write_json
    from mamushi.io.tables import write_table
    from mamushi.io.tensors import drop_others

    write_table(log_table, schema, log, metadata=job.origin)
    drop_others(card, job.origin)
    write_json(card, {**job.origin, **counts})
    if not keeps_state:
        state_of(card).unlink(missing_ok=True)


def speed_up(
    model: PreTrainedModel,
    accelerator: Accelerator,
    trains: Trains,
    lengths: tuple[int, int],
    job: Job,
) -> None:
    """Let rooms make the passes of a model faster whose blocks below those that ``trains`` trains
    are those of unlearning's start; it reads the ranked and the held-out texts of the job, cut at
    these ``lengths``."""
    for addition in additions("speed_up"):
        addition(model=model, accelerator=accelerator, trains=trains, lengths=lengths, job=job)
