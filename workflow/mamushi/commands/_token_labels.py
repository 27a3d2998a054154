"""Token ids and labels of the texts to train on, with the spans of a list left out of the loss."""

from __future__ import annotations

import json
from pathlib import Path

from mamushi.errors import UserError

IGNORED = -100
"""The label of what is not predicted, in the losses of PyTorch and of all trainers on it."""


def write(spans: Path, out: Path) -> None:
    """Write a JSON object a line: ``id``, ``domain``, ``input_ids`` and ``labels`` of each text of
    the section from which tokens are masked, as trainers read texts that are tokenized already.

    The texts are cut where their tokens were scored. Copies that cleaning has collapsed are not
    among them. Raises ``UserError`` for a file that is no run's spans, whose manifest or run is not
    there, or that is not the manifest's.
    """
    from mamushi.artifacts import paths, schemas
    from mamushi.artifacts.domains import INFERENCE
    from mamushi.artifacts.files import atomic, read_json, sha256
    from mamushi.artifacts.tables import read_table
    from mamushi.lm.tokens import masked, read_tokens

    where = paths.wildcards(paths.SPANS, spans.absolute())
    if where is None:
        do = "give results/runs/.../spans/SELECTOR/betaB.parquet"
        raise UserError("is no spans of a run", where=spans, do=do)
    about = read_json(spans.with_suffix(".json"))
    if about["spans_sha256"] != sha256(spans):
        do = "run the workflow again"
        raise UserError("is not the file of the manifest beside it", where=spans, do=do)
    found: dict[str, list[tuple[int, int]]] = {}
    for row in read_table(spans, schemas.SPANS).to_pylist():
        found.setdefault(row["id"], []).append((row["start"], row["stop"]))
    tokens, examples = (
        paths.under(pattern=pattern, **where) for pattern in (paths.TOKENS, paths.EXAMPLES)
    )
    texts = masked(read_tokens(tokens, examples, INFERENCE, about["max_length"]), found)
    with atomic(out) as part, part.open("w", encoding="utf-8") as file:
        for row in range(len(texts)):
            ids, counted = texts[row].tolist(), texts.weights_of(row).tolist()
            labels = [i if weight else IGNORED for i, weight in zip(ids, counted, strict=True)]
            line = {"id": texts.ids[row], "domain": texts.domains[row]}
            file.write(json.dumps({**line, "input_ids": ids, "labels": labels}) + "\n")
