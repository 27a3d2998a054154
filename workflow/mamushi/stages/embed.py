"""Embed the inference section with the contaminated model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mamushi.configuration.settings import Embed, Opened
from mamushi.running.stage import Job, writes
from mamushi.stages import _models

GPU = True


@dataclass(frozen=True, kw_only=True)
class Files(_models.TextFiles, _models.ModelFiles):
    out: Path = writes("embeddings table to write")


def run(files: Files, chosen: Embed, job: Job) -> None:
    import pyarrow as pa

    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import INFERENCE, read_metadata, write_table
    from mamushi.lm.embed import embed
    from mamushi.lm.tokens import read_tokens

    how = chosen.embedding
    opened = Opened(training=chosen.training, precision=how.precision)
    model, accelerator = _models.opened(files, opened)
    texts = read_tokens(files.tokens, files.examples, INFERENCE, how.max_length)
    vectors = embed(
        model,
        texts,
        pooling=how.pooling,
        layers=[how.layer],
        skip_first=how.skip_bos and read_metadata(files.tokens)["bos_token_id"] is not None,
        batch_tokens=job.execution.batch_tokens,
        accelerator=accelerator,
    )
    columns = {
        "id": texts.ids,
        "domain": texts.domains,
        "embedding": pa.FixedSizeListArray.from_arrays(
            pa.array(vectors.reshape(-1)), vectors.shape[2]
        ),
    }
    write_table(files.out, schemas.EMBEDDINGS, columns, metadata=job.origin)
