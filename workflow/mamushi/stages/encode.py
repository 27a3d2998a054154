"""Embed the inference section with a sentence encoder."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mamushi.artifacts import digests
from mamushi.configuration.kinds import Section
from mamushi.configuration.sources import MODEL_FILES
from mamushi.running import launch
from mamushi.running.identity import digest
from mamushi.running.stage import Job
from mamushi.stages import _models
from mamushi.stages._settings import Config, Settings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mamushi.artifacts.shards import Piece

GPU = True


class Encoder(Section):
    """Where a sentence encoder is."""

    source: str
    revision: str | None


class Encode(Settings):
    """Settings of the stage ``encode``; ``inputs`` are a folder's files by their names in it."""

    embedding: Encoder
    inputs: dict[str, str] = field(default_factory=dict)


def settings(config: Config, model: str) -> Encode:
    definition = config["models"][model]
    folder = os.path.expanduser(definition["source"] or "")
    return Encode(
        embedding=Encoder(source=definition["source"] or "", revision=definition["revision"]),
        inputs={
            os.path.relpath(path, folder): digests.of(path) for path in encoder_files(config, model)
        },
        code=digest(__name__),
    )


def encoder_files(config: Config, model: str) -> list[str]:
    """The files of an encoder in a folder, with those in its sub-folders; none of the hub's."""
    folder = os.path.expanduser(config["models"][model]["source"] or "")
    found = [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names]
    return sorted(path for path in found if path.endswith(MODEL_FILES))


@dataclass(frozen=True, kw_only=True)
class Files(_models.VectorFiles):
    """Texts; the settings have the encoder."""


def run(files: Files, settings: Encode, job: Job) -> None:
    """Write the embeddings, or a shard of them; with ``shards``, put these together."""
    import pyarrow as pa

    from mamushi.artifacts import schemas
    from mamushi.artifacts.shards import ranked, write_pieces
    from mamushi.lm.batches import pieces
    from mamushi.lm.encoder import encode, lengths_of, open_encoder

    if _models.joined(files, schemas.EMBEDDINGS, job):
        return
    encoder = open_encoder(settings.embedding.source, settings.embedding.revision, settings.inputs)
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
