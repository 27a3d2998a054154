"""Embed the inference section with the contaminated model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mamushi.configuration.models import Trained
from mamushi.configuration.sections import PooledLayer
from mamushi.running import launch
from mamushi.running.identity import digest
from mamushi.running.stage import Job
from mamushi.stages import _models
from mamushi.stages._settings import Config, Opened, Settings, embedder, part

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from transformers import PreTrainedModel

    from mamushi.artifacts.schemas import Table
    from mamushi.artifacts.shards import Piece
    from mamushi.stages.embed_layers import EmbedLayers

GPU = True


class Embed(Settings):
    """Settings of the stage ``embed``; no ``training`` for a model that embeds as it is."""

    embedding: PooledLayer
    training: Trained | None


def settings(config: Config, model: str) -> Embed:
    return Embed(
        embedding=part(PooledLayer, config["embedding"]),
        training=embedder(config, model),
        code=digest(__name__),
    )


@dataclass(frozen=True, kw_only=True)
class Files(_models.TextFiles, _models.ModelFiles, _models.VectorFiles):
    """A language model, and texts as its tokens."""


def run(files: Files, settings: Embed, job: Job) -> None:
    """Write the embeddings, or a shard of them; with ``shards``, put these together."""
    from mamushi.artifacts import schemas

    layers = {"embedding": settings.embedding.layer}
    embed_at(files, settings, job, schemas.EMBEDDINGS, lambda _: layers)


def embed_at(
    files: Files,
    settings: Embed | EmbedLayers,
    job: Job,
    kind: Table,
    layers_of: Callable[[PreTrainedModel], dict[str, int]],
) -> None:
    """Write a table of vectors, or a shard of it, with a column for each of the model's layers in
    ``layers_of``, all from one forward pass; with ``shards``, put these together."""
    from mamushi.artifacts.shards import ranked, write_pieces
    from mamushi.artifacts.tables import INFERENCE, read_metadata
    from mamushi.lm.attention import supports
    from mamushi.lm.batches import pieces
    from mamushi.lm.embed import embed
    from mamushi.lm.tokens import read_tokens, subset

    if _models.joined(files, kind, job):
        return
    how, batch_tokens = settings.embedding, job.execution.batch_tokens
    opened = Opened(training=settings.training, precision=how.precision)
    model, accelerator = _models.opened(files, opened)
    layers = layers_of(model)
    texts = read_tokens(files.tokens, files.examples, INFERENCE, how.max_length)
    skip_first = how.skip_bos and read_metadata(files.tokens)["bos_token_id"] is not None

    def embedded(rows: NDArray[np.int64]) -> Piece:
        vectors = embed(
            model,
            subset(texts, rows),
            pooling=how.pooling,
            layers=list(layers.values()),
            skip_first=skip_first,
            batch_tokens=batch_tokens,
            accelerator=accelerator,
        )
        return rows, dict(zip(layers, vectors, strict=True))

    cut = pieces(texts.lengths, batch_tokens, shared=supports(model), shard=files.shard)
    found, of = map(embedded, cut), ranked(files.examples)
    # The table of one layer has it among the settings.
    metadata = job.origin if "embedding" in layers else {**job.origin, "layers": layers}
    write_pieces(files.out, kind, found, of, metadata, files.shard, beside=launch.is_secondary())
