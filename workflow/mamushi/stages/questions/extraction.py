"""Whether a model completes forget texts from their beginnings: greedily, and by sampling."""

from __future__ import annotations

from typing import Any

from mamushi.stages import _asking
from mamushi.stages._settings import Extraction


def answer(subject: _asking.Subject, asked: Extraction) -> _asking.Answers:
    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import INFERENCE
    from mamushi.evaluation.texts import rouge_l
    from mamushi.lm.generate import completions

    wanted = ((INFERENCE,), asked.texts, asked.max_length)
    texts, _, planted = _asking.forget_texts(subject, *wanted)

    def words(tokens: list[int]) -> str:
        return str(subject.tokenizer.decode(tokens, skip_special_tokens=True))

    columns: dict[str, list[Any]] = {name: [] for name in schemas.EXTRACTION.schema.names}
    for prefix in asked.prefixes:
        # At least a token to start from, and one to go on with.
        cuts = [max(1, int(n * prefix)) for n in texts.lengths.tolist()]
        rows = [texts[row] for row in range(len(texts))]
        said = completions(
            subject.model,
            subject.tokenizer,
            [row[:cut] for row, cut in zip(rows, cuts, strict=True)],
            [len(row) - cut for row, cut in zip(rows, cuts, strict=True)],
            asked.samples,
            subject.accelerator,
        )
        for i, found in enumerate(said):
            truth = rows[i][cuts[i] :].tolist()
            for sample, tokens in enumerate(found):
                whole = words(truth), words(tokens)
                row = {
                    "id": texts.ids[i],
                    "planted": planted[i],
                    "prefix": prefix,
                    "decoding": "sampled" if sample else "greedy",
                    "sample": sample,
                    "tokens": len(truth),
                    "exact": tokens == truth,
                    "rouge_l": rouge_l(whole[1], whole[0]),
                }
                for name, value in row.items():
                    columns[name].append(value)
    return {"extraction": (schemas.EXTRACTION, columns)}
