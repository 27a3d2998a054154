"""Ask a model the tasks of lm-evaluation-harness that the configuration names."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from mamushi.configuration.settings import Tasks
from mamushi.running.stage import Job, reads, writes
from mamushi.stages import _models

GPU = True


@dataclass(frozen=True, kw_only=True)
class Files(_models.ModelFiles):
    unlearned: Path | None = reads("unlearned tensors to lay over these", default=None)
    out: Path = writes("table of the tasks' metrics to write")


def run(files: Files, chosen: Tasks, job: Job) -> None:
    """Raises ``UserError`` where the harness is not installed or does not know a task."""
    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import write_table
    from mamushi.lm import device, harness
    from mamushi.lm.loading import open_tokenizer, open_trained
    from mamushi.lm.storage import overlay

    manager = harness.require(chosen.tasks)
    device.reproducible(0)
    accelerator = device.accelerator(chosen.precision)
    training = None if chosen.training is None else asdict(chosen.training)
    model = open_trained(files.model_card, files.trained, training)
    if files.unlearned:
        overlay(files.unlearned, model)
    device.place(model, chosen.precision, accelerator.device)
    tokenizer = open_tokenizer(files.model_card)
    found = harness.scores(model, tokenizer, chosen.tasks, chosen.precision, manager)
    write_table(files.out, schemas.TASK_SCORES, found, metadata=job.origin)
