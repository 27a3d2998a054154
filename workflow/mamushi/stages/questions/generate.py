"""Continue the prompts with a model, greedily."""

from __future__ import annotations

from mamushi.configuration.sections import Prompts
from mamushi.stages import _asking


def answer(subject: _asking.Subject, asked: Prompts) -> _asking.Answers:
    """Raises ``UserError`` for a prompt that does not fit the model with its continuation."""
    from mamushi.artifacts import schemas
    from mamushi.lm.generate import continuations

    given = (subject.tokenizer, asked.prompts, asked.new_tokens, subject.accelerator)
    return {"generations": (schemas.CONTINUATIONS, continuations(subject.model, *given))}
