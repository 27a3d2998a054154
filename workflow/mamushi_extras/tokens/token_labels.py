"""The texts to train on with the spans of a list masked: as token ids and labels, or cut out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mamushi.errors import UserError

if TYPE_CHECKING:
    from mamushi.lm.tokens import TokenSet

IGNORED = -100
"""The label of what is not predicted, in the losses of PyTorch and of all trainers on it."""


def write_labels(spans: Path, out: Path, *, cut: bool = False) -> None:
    """Write a JSON object a line for each text of the section from which tokens are masked.

    That is ``input_ids``, ``attention_mask`` and ``labels``, and no other column, as trainers read
    texts that are tokenized already; or, to ``cut``, its ``id``, ``domain`` and the ``text`` that
    is left. The texts end where their tokens were scored. Copies that cleaning has collapsed are
    not among them. Raises ``UserError`` for a file that is no run's spans, whose manifest or run is
    not there, or that is not the manifest's.
    """
    from mamushi.io import digests, paths, schemas
    from mamushi.io.domains import INFERENCE
    from mamushi.io.files import atomic, read_json
    from mamushi.io.tables import read_table
    from mamushi.lm.tokens import masked, read_spans, read_tokens
    from mamushi_extras.tokens.masks import digest_of_spans

    where = paths.wildcards(paths.SPANS, spans.absolute())
    if where is None:
        do = "give results/runs/.../spans/SELECTOR/betaB.parquet"
        raise UserError("is no spans of a run", where=spans, do=do)
    manifest = read_json(spans.with_suffix(".json"))
    rows = read_table(spans, schemas.SPANS).to_pylist()
    if manifest["spans_sha256"] != digest_of_spans(rows):
        do = "run the workflow again"
        raise UserError("is not the file of the manifest beside it", where=spans, do=do)
    spans_of = read_spans(spans)
    tokens, examples, card = (
        paths.under(pattern=pattern, **where)
        for pattern in (paths.TOKENS, paths.EXAMPLES, paths.MODEL_CARD)
    )
    made_from = manifest.get("provenance", {}).get("inputs", {})
    read = {"examples": examples, "tokens": tokens} | ({"model_card": card} if cut else {})
    for name, path in read.items():
        if digests.of(path) != made_from.get(name):
            do = "put the file of this run back, or run the workflow again"
            raise UserError(f"is of another run than {spans}", where=path, do=do)
    texts = masked(read_tokens(tokens, examples, INFERENCE, manifest["max_length"]), spans_of)
    lines = _cut(texts, spans_of, card) if cut else _labels(texts)
    with atomic(out) as part, part.open("w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)


def _labels(texts: TokenSet) -> Iterator[dict[str, Any]]:
    for row in range(len(texts)):
        ids, counted = texts[row].tolist(), texts.weights_of(row).tolist()
        labels = [i if weight else IGNORED for i, weight in zip(ids, counted, strict=True)]
        yield {"input_ids": ids, "attention_mask": [1] * len(ids), "labels": labels}


def _cut(
    texts: TokenSet, spans: dict[str, list[tuple[int, int]]], card: Path
) -> Iterator[dict[str, Any]]:
    from mamushi.lm.loading import open_tokenizer
    from mamushi.lm.tokens import text_of

    tokenizer = open_tokenizer(card)
    for row, name in enumerate(texts.ids):
        edges = [edge for span in sorted(spans.get(name, [])) for edge in span]
        text, ends = text_of(tokenizer, texts[row].tolist(), edges)
        kept = zip([0, *ends[1::2]], [*ends[::2], len(text)], strict=True)
        left = "".join(text[start:stop] for start, stop in kept)
        yield {"id": name, "domain": texts.domains[row], "text": left}
