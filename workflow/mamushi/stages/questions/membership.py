"""What a model makes of single forget texts, from which membership inference starts: those that
were there to be ranked, and those that were held out."""

from __future__ import annotations

from mamushi.stages import _asking
from mamushi.stages._settings import Membership


def answer(subject: _asking.Subject, asked: Membership) -> _asking.Answers:
    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import EVALUATION, INFERENCE
    from mamushi.lm.likelihoods import text_statistics, zlib_bytes

    wanted = ((INFERENCE, EVALUATION), asked.texts, asked.max_length)
    texts, sections, planted = _asking.forget_texts(subject, *wanted)
    # What the model reads of a text, and not what was cut off.
    read = [
        subject.tokenizer.decode(texts[row].tolist(), skip_special_tokens=True)
        for row in range(len(texts))
    ]
    given = (subject.batch_tokens, subject.accelerator, asked.least)
    columns = {
        "id": texts.ids,
        "section": sections,
        "planted": planted,
        "tokens": texts.lengths - 1,
        "zlib": zlib_bytes(read),
        **text_statistics(subject.model, texts, *given),
    }
    return {"membership": (schemas.LIKELIHOODS, columns)}
