"""Fine-tune a model on a few forget examples, and measure how fast it learns the domain.

Gold never saw the domain: an unlearned model that comes back much faster had only hidden it.
"""

from __future__ import annotations

from dataclasses import asdict

from mamushi.stages import _asking
from mamushi.stages._settings import Relearn


def answer(subject: _asking.Subject, asked: Relearn) -> _asking.Answers:
    """The model is another one afterwards.

    Raises ``UserError`` where there is no forget text to learn, or training diverges.
    """
    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import EVALUATION, FORGET, INFERENCE
    from mamushi.lm.perplexity import require_domains
    from mamushi.lm.tokens import subset
    from mamushi.unlearning.relearning import choose, relearn
    from mamushi.unlearning.trunk import starting_from

    held_out = subject.texts(EVALUATION, asked.evaluation.max_length)
    require_domains(held_out)
    forget = subject.texts(INFERENCE, asked.max_length, domains=[FORGET])
    few = subset(forget, choose(forget, asked.relearning.examples, asked.seed))
    model = subject.to_train(asked)
    with starting_from(subject.trunk, model):
        curve = relearn(
            model,
            few,
            held_out,
            asdict(asked.relearning),
            seed=asked.seed,
            accelerator=subject.accelerator,
            batch_tokens=subject.batch_tokens,
        )
    return {"relearning": (schemas.RELEARNING_CURVE, curve)}
