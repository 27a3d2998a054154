"""Fine-tune a base model on a section's texts and keep it: contaminated, gold and beta 0."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mamushi.running.stage import Job, writes
from mamushi.stages import _models
from mamushi.stages._settings import FineTune

GPU = True


@dataclass(frozen=True, kw_only=True)
class Files(_models.TrainingFiles):
    tensors: Path = writes("trained tensors to write")


def run(files: Files, settings: FineTune, job: Job) -> None:
    from mamushi.lm.storage import save_trained

    model, accelerator = _models.fine_tuned(files, settings, job)
    save_trained(files.tensors, model, job.origin)
    if accelerator.is_main_process:
        # Last, so that a kill before this line still finds the state to go on from.
        files.state.unlink(missing_ok=True)
