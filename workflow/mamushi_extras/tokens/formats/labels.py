"""of spans: JSON Lines with input_ids, attention_mask and labels, -100 where a token is masked, as
TRL and axolotl read tokenized texts."""

import json
from pathlib import Path

from mamushi.errors import UserError

IGNORED = -100
"""The label of what is not predicted, in the losses of PyTorch and of all trainers on it."""


def write(spans: Path, out: Path) -> None:
    """Write a JSON object a line for each text of the section from which tokens are masked.

    That is ``input_ids``, ``attention_mask`` and ``labels``, and no other column, as trainers read
    texts that are tokenized already. The texts end where their tokens were scored. Copies that
    cleaning has collapsed are not among them. Raises ``UserError`` for a file that is no run's
    spans, whose manifest or run is not there, or that is not the manifest's.
    """
    from mamushi.io import digests, paths, schemas
    from mamushi.io.domains import INFERENCE
    from mamushi.io.files import atomic, read_json
    from mamushi.io.tables import read_table
    from mamushi.lm.tokens import masked, read_tokens
    from mamushi_extras.tokens.masks import digest_of_spans

    where = paths.wildcards(paths.SPANS, spans.absolute())
    if where is None:
        do = "give results/runs/.../spans/SELECTOR/betaB.parquet"
        raise UserError("is no spans of a run", where=spans, do=do)
    manifest = read_json(spans.with_suffix(".json"))
    patterns = {"tokens": paths.TOKENS, "examples": paths.EXAMPLES}
    files = {name: paths.under(pattern=pattern, **where) for name, pattern in patterns.items()}
    stored = manifest["provenance"]["inputs"]
    same = {name: digests.of(path) == stored[name] for name, path in files.items()}
    rows = read_table(spans, schemas.SPANS).to_pylist()
    same["spans"] = digest_of_spans(rows) == manifest["spans_sha256"]
    if changed := [name for name in same if not same[name]]:
        problem = f"its manifest is of other {changed[0]} than this run has"
        raise UserError(problem, where=spans, do="run the workflow again")
    tokens, examples = files.values()
    read = read_tokens(tokens, examples, INFERENCE, manifest["max_length"])
    texts = masked(read, rows)
    with atomic(out) as draft, draft.open("w", encoding="utf-8") as file:
        for row in range(len(texts)):
            ids, counted = texts[row].tolist(), texts.weights_of(row).tolist()
            labels = [i if weight else IGNORED for i, weight in zip(ids, counted, strict=True)]
            line = {"input_ids": ids, "attention_mask": [1] * len(ids), "labels": labels}
            file.write(f"{json.dumps(line)}\n")
