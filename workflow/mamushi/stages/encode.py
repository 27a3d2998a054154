"""Embed the inference section with a sentence encoder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mamushi.configuration.settings import Encode
from mamushi.running.stage import Job, reads, writes

GPU = True


@dataclass(frozen=True, kw_only=True)
class Files:
    examples: Path = reads("examples table")
    out: Path = writes("embeddings table to write")


def run(files: Files, chosen: Encode, job: Job) -> None:
    import pyarrow as pa

    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import INFERENCE, read_table, write_table
    from mamushi.lm.encoder import encode, open_encoder

    encoder = open_encoder(chosen.embedding.source, chosen.embedding.revision, chosen.inputs)
    examples = read_table(files.examples, schemas.EXAMPLES, ["id", "text", "domain", "section"])
    rows = [section == INFERENCE for section in examples["section"].to_pylist()]
    ranked = examples.filter(pa.array(rows))
    ids, texts = ranked["id"].to_pylist(), ranked["text"].to_pylist()
    vectors = encode(encoder, ids, texts, job.execution.batch_tokens)
    columns = {
        "id": ranked["id"],
        "domain": ranked["domain"],
        "embedding": pa.FixedSizeListArray.from_arrays(
            pa.array(vectors.reshape(-1)), vectors.shape[1]
        ),
    }
    write_table(files.out, schemas.EMBEDDINGS, columns, metadata=job.origin)
