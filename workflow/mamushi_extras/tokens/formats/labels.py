"""of spans: JSON Lines with input_ids, attention_mask and labels, -100 where a token is masked, as
TRL and axolotl read tokenized texts."""

import json
from pathlib import Path

from mamushi.errors import UserError

IGNORED = -100  # In the losses of PyTorch and of all trainers on it.


def write(spans: Path, out: Path) -> None:
    """Write an object for each text of the section from which tokens are masked, as far as its
    tokens were scored; without copies, which cleaning has collapsed. Raises ``UserError`` for a
    file that is no run's spans, or not its manifest's."""
    from mamushi.io import digests, paths, schemas
    from mamushi.io.domains import INFERENCE
    from mamushi.io.files import atomic, read_json
    from mamushi.io.tables import examples_file, read_table
    from mamushi.lm.tokens import mask_spans, read_tokens
    from mamushi_extras.tokens.masks import digest_of_spans

    where = paths.wildcards(paths.SPANS, spans.absolute())
    if where is None:
        do = "give results/runs/.../spans/SELECTOR/betaB.parquet"
        raise UserError("is no spans of a run", where=spans, do=do)
    manifest, rows = read_json(spans.with_suffix(".json")), read_table(spans, schemas.SPANS)
    inputs, masks = manifest["provenance"]["inputs"], rows.to_pylist()
    tokens = paths.under(pattern=paths.TOKENS, **where)
    examples = examples_file(digest=inputs["examples"], **where)
    stored = [inputs["tokens"], inputs["examples"], manifest["spans_sha256"]]
    if [digests.of(tokens), digests.of(examples), digest_of_spans(masks)] != stored:
        raise UserError("is of another run than its manifest", where=spans, do="run it again")
    read = read_tokens(tokens, examples, INFERENCE, manifest["max_length"])
    texts = mask_spans(read, masks)
    with atomic(out) as draft, draft.open("w", encoding="utf-8") as file:
        for row in range(len(texts)):
            ids, counted = texts[row].tolist(), texts.weights_of(row).tolist()
            labels = [i if weight else IGNORED for i, weight in zip(ids, counted, strict=True)]
            line = {"input_ids": ids, "attention_mask": [1] * len(ids), "labels": labels}
            file.write(f"{json.dumps(line)}\n")
