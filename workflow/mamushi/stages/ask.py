"""Ask a model that is kept: what it says, knows of single texts, can still do, and learns anew."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mamushi.running.stage import Job, reads
from mamushi.stages import _asking, _models
from mamushi.stages._settings import Ask

GPU = True


@dataclass(frozen=True, kw_only=True)
class Files(_asking.AnswerFiles, _models.ModelFiles):
    examples: Path | None = reads("examples table", default=None)
    tokens: Path | None = reads("token cache of the model", default=None)
    unlearned: Path | None = reads("tensors that unlearning trained, over the others", default=None)


def run(files: Files, settings: Ask, job: Job) -> None:
    from mamushi.lm.storage import load_trained

    questions, how = settings.questions, settings.model
    _asking.require(questions)
    further = questions.relapse or questions.relearn
    seed = further.seed if further else 0
    model, accelerator = _models.opened(files, how, how.unlearned or further, seed)
    if files.unlearned:
        load_trained(files.unlearned, model)
    subject = _asking.subject(files, model, accelerator, job, how.precision)
    _asking.write(files, _asking.answers(subject, questions), accelerator, job)
