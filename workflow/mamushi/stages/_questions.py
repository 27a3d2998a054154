"""What models are asked: a function for each question, which gives its tables by their names."""

from __future__ import annotations

from dataclasses import asdict

from mamushi.config.sections import Prompts
from mamushi.stages import _asking
from mamushi.stages._settings import Membership, Relearn


def generate(subject: _asking.Subject, asked: Prompts) -> _asking.Answers:
    """Continue the prompts with a model, greedily.

    Raises ``UserError`` for a prompt that does not fit the model with its continuation.
    """
    from mamushi.io import schemas
    from mamushi.lm.generate import continuations

    given = (subject.tokenizer, asked.prompts, asked.new_tokens, subject.accelerator)
    return {"generations": (schemas.CONTINUATIONS, continuations(subject.model, *given))}


def membership(subject: _asking.Subject, asked: Membership) -> _asking.Answers:
    """Read single forget texts, from which membership inference starts: those that were there to be
    ranked, and those that were held out. Raises ``UserError`` if a likelihood is not finite."""
    import numpy as np

    from mamushi.errors import UserError
    from mamushi.io import schemas
    from mamushi.io.tables import EVALUATION, INFERENCE
    from mamushi.lm.perplexity import nll_table, text_nll

    wanted = ((INFERENCE, EVALUATION), asked.texts, asked.max_length)
    texts, sections, planted = _asking.forget_texts(subject, *wanted)
    found = text_nll(subject.model, texts, subject.batch_tokens, subject.accelerator)
    if not np.isfinite(found.nll).all():
        what = "the likelihood of a text is not finite: the model diverged"
        raise UserError(what, do="lower its learning rate")
    columns = {**nll_table(found, texts.ids), "section": sections, "planted": planted}
    return {"membership": (schemas.LIKELIHOODS, columns)}


def relearn(subject: _asking.Subject, asked: Relearn) -> _asking.Answers:
    """Fine-tune a model on a few forget examples, and measure how fast it learns the domain.

    Gold never saw the domain: an unlearned model that comes back much faster had only hidden it.
    The model is another one afterwards. Raises ``UserError`` without a forget text to learn, or if
    training diverges.
    """
    from mamushi.io import schemas
    from mamushi.io.tables import EVALUATION, FORGET, INFERENCE
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
