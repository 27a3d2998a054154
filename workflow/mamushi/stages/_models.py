"""How the stages open a model, and what they share of its work."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mamushi.config.kinds import Settings, setting
from mamushi.config.sections import Lora, Method, Training
from mamushi.io.digests import fingerprint
from mamushi.io.files import IS_SECONDARY, write_json
from mamushi.registry import additions
from mamushi.running.stage import Job, job_of, stages
from mamushi.stages._io import parquet

if TYPE_CHECKING:
    from accelerate import Accelerator
    from transformers import PreTrainedModel

    from mamushi.io.columns import Table
    from mamushi.lm.storage import Checkpoint


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
    """What unlearning trains, ``trained_blocks`` by the method ``partial`` alone, and where it cuts
    texts."""

    method: Literal["partial", "lora", "full"] = setting(
        "models.{model}.training.method", default="partial"
    )
    lora: Lora = setting("models.{model}.training.lora", default=Lora())
    trained_blocks: int = setting("unlearning.trained_blocks")
    max_length: int = setting("unlearning.max_length")


class OpenedArm(Settings):
    """In which precision any model of a cell is opened."""

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

    What ``trains`` names takes gradients: by the method ``partial`` the last ``trained_blocks``
    alone. All that was trained before lies in fp32 as well, as it does when the start and the gold
    standard are measured: rounded, it would be another model than the one at which the scale of
    recovery has its zero.
    """
    from mamushi.lm import device
    from mamushi.lm.loading import open_placed
    from mamushi.lm.parameters import freeze, last_blocks

    ends = {"train_input_embedding": False, "train_output_head": False}
    training = trains and Training.model_validate(ends | trains.model_dump(), extra="ignore")

    def prepare(model: PreTrainedModel) -> None:
        if training and training.method == "partial":
            last_blocks(model, training.trained_blocks).requires_grad_(True)
        elif training:
            freeze(model, training)

    device.seed_torch(seed)
    accelerator = device.accelerator(precision)
    stored = [path for path in (trained, unlearned) if path]
    model = open_placed(model_card, stored, accelerator, prepare)
    if training:
        freeze(model, training)
    return model, accelerator


def checkpoint_of(card: Path, job: Job) -> Checkpoint:
    """Return from where a job's training goes on if it is killed: a file beside its card, until
    ``finish_training`` deletes it."""
    from mamushi.lm.storage import Checkpoint

    state, seconds = card.with_name(f"{card.name}.state"), float(job.execution.checkpoint_seconds)
    return Checkpoint(state, fingerprint(job.origin), seconds)


def finish_training(
    job: Job, schema: Table, log: Mapping[str, Any], counts: Mapping[str, Any], **model: Path | None
) -> None:
    """Write the step log of a training, and its card. Measure the ``model`` of these files as the
    stage ``evaluate`` does, if the job has settings for that, and then delete the state to go on
    from: where measuring fails, Snakemake deletes the model too, and the next attempt goes on."""
    from accelerate import PartialState

    files = job.files
    parquet.write_table(files["log_table"], schema, log, metadata=job.origin)
    write_json(files["card"], {**job.origin, **counts})
    PartialState().wait_for_everyone()
    if files["evaluation"] is not None:
        # The model that was trained makes room.
        gc.collect()
        read = {name: files[name] for name in ("examples", "tokens", "model_card")}
        read |= {"settings": files["evaluation"], "execution": job.execution.model_dump_json()}
        of_evaluate = {**read, **model, "out": files["perplexity"], "nll": files["nll"]}
        job_of(stages()["evaluate"], **of_evaluate).run()
    if not IS_SECONDARY:
        checkpoint_of(files["card"], job).path.unlink(missing_ok=True)


def join_passes(
    model: PreTrainedModel, accelerator: Accelerator, trains: Trains | None, held_out: int, job: Job
) -> Any:
    """Let rooms take part in the passes of a model that was opened, over the job's ranked texts
    and, cut at ``held_out`` tokens, its held-out ones. Where unlearning ``trains`` the last blocks,
    those before are its start's, and may be made faster. Return what reads along over the held-out
    texts, see ``lm.perplexity``, or None."""
    opened = {"model": model, "accelerator": accelerator, "trains": trains, "job": job}
    lengths = trains.max_length if trains else held_out, held_out
    readers = [join(lengths=lengths, **opened) for join in additions("join_passes")]
    return next(filter(None, readers), None)
