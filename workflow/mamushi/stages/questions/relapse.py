"""Does what was deleted come back? Fine-tune a model on a few texts, of the forget domain, of the
retain domain and of neither, and round its weights; and what it says of every text before that.

The gold standard is treated in the same way, since it learns the domain too, and is rounded too.
"""

from __future__ import annotations

from dataclasses import asdict

from mamushi.stages import _asking
from mamushi.stages._settings import Relearn


def answer(subject: _asking.Subject, asked: Relearn) -> _asking.Answers:
    """The model is the same afterwards.

    Raises ``UserError`` where there is no forget text to learn, or training diverges.
    """
    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import EVALUATION, FORGET, INFERENCE, RETAIN
    from mamushi.lm.perplexity import nll_table, require_domains, text_nll
    from mamushi.unlearning.relapse import relapse, unrelated

    length = asked.evaluation.max_length
    held_out = subject.texts(EVALUATION, length)
    require_domains(held_out)
    model, batch = subject.to_train(asked), subject.batch_tokens
    # What was removed, and what was not.
    ranked = subject.texts(INFERENCE, length, domains=[FORGET])
    parts = [
        nll_table(text_nll(model, texts, batch, subject.accelerator), texts.ids)
        for texts in (held_out, ranked)
    ]
    texts = {
        name: subject.texts(INFERENCE, asked.max_length, domains=[name])
        for name in (FORGET, RETAIN)
    }
    texts["unrelated"] = unrelated(subject.tokenizer, asked.max_length)
    found = relapse(
        model,
        texts,
        held_out,
        asdict(asked.relearning),
        seed=asked.seed,
        accelerator=subject.accelerator,
        batch_tokens=batch,
    )
    nll = {name: [*parts[0][name], *parts[1][name]] for name in parts[0]}
    return {"relapse": (schemas.RELAPSES, found), "relapse_nll": (schemas.NLL, nll)}
