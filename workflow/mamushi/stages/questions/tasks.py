"""Ask a model the tasks of lm-evaluation-harness that the configuration names."""

from __future__ import annotations

from mamushi.stages import _asking
from mamushi.stages._settings import Tasks


def answer(subject: _asking.Subject, asked: Tasks) -> _asking.Answers:
    """Raises ``UserError`` where the harness is not installed or does not know a task."""
    from mamushi.artifacts import schemas
    from mamushi.lm import harness

    manager = harness.require(asked.tasks)
    given = (subject.tokenizer, asked.tasks, subject.precision, manager)
    return {"tasks": (schemas.TASK_SCORES, harness.scores(subject.model, *given))}
