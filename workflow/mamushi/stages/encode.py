"""Embed the inference section with a sentence encoder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mamushi.configuration.settings import Encode
from mamushi.running import launch
from mamushi.running.stage import Job
from mamushi.stages import _models

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mamushi.artifacts.shards import Piece

GPU = True


@dataclass(frozen=True, kw_only=True)
class Files(_models.VectorFiles):
    """Texts; the settings have the encoder."""


def run(files: Files, chosen: Encode, job: Job) -> None:
    """Write the embeddings, or a shard of them; with ``shards``, put these together."""
    import pyarrow as pa

    from mamushi.artifacts import schemas
    from mamushi.artifacts.shards import ranked, write_pieces
    from mamushi.lm.batches import pieces
    from mamushi.lm.encoder import encode, lengths_of, open_encoder

    if _models.joined(files, schemas.EMBEDDINGS, job):
        return
    encoder = open_encoder(chosen.embedding.source, chosen.embedding.revision, chosen.inputs)
    texts = ranked(files.examples, "text")
    strings, ids, batch_tokens = texts.pop("text"), texts["id"], job.execution.batch_tokens

    def embedded(rows: NDArray[np.int64]) -> Piece:
        own = [column.take(pa.array(rows)).to_pylist() for column in (ids, strings)]
        return rows, {"embedding": encode(encoder, own[0], own[1], batch_tokens)}

    cut = pieces(lengths_of(encoder, strings), batch_tokens, shared=False, shard=files.shard)
    found = map(embedded, cut)
    write_pieces(
        files.out,
        schemas.EMBEDDINGS,
        found,
        texts,
        job.origin,
        files.shard,
        beside=launch.is_secondary(),
    )
