"""The inference section as vectors of the contaminated model, at its last layer or at others."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mamushi.config.models import Trained
from mamushi.config.sections import PooledLayer, Pooling
from mamushi.running import launch
from mamushi.running.stage import Job
from mamushi.stages import _models
from mamushi.stages._settings import Config, Opened, Settings, setting

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from transformers import PreTrainedModel

    from mamushi.io.schemas import Table
    from mamushi.io.shards import Piece

GPU = True


def embedder(config: Config, model: str) -> Any:
    """Return what was trained of the model that embeds; None for one that embeds as it is."""
    ready = config["models"][model].get("contaminated", False)
    return None if ready else config["models"][model]["training"]


class Embed(Settings):
    """No ``training`` for a model that embeds as it is."""

    embedding: PooledLayer = setting("embedding")
    training: Trained | None = setting(embedder)


class EmbedLayers(Settings):
    """As those of ``embed``, with shares of the model's blocks."""

    embedding: Pooling = setting("embedding")
    training: Trained | None = setting(embedder)
    depths: list[float] = setting("embedding.depths")


class EmbedFiles(_models.TextFiles, _models.ModelFiles, _models.VectorFiles):
    """A language model, and texts as its tokens."""


def embed(files: EmbedFiles, settings: Embed, job: Job) -> None:
    """Embed the inference section with the contaminated model.

    Writes the embeddings, or a shard of them; with ``shards``, puts these together.
    """
    from mamushi.io import schemas

    layers = {"embedding": settings.embedding.layer}
    embed_at(files, settings, job, schemas.EMBEDDINGS, lambda _: layers)


def embed_layers(files: EmbedFiles, settings: EmbedLayers, job: Job) -> None:
    """Embed the inference section at other depths of the contaminated model: a column for each.

    Apart from ``embed``: no ranking by the last layer depends on which other layers one asks for.
    """
    from mamushi.io import schemas
    from mamushi.lm.embed import at_depth
    from mamushi.selection.pool import column_of

    def layers_of(model: PreTrainedModel) -> dict[str, int]:
        blocks = int(model.config.num_hidden_layers)
        return {column_of(depth): at_depth(depth, blocks) for depth in settings.depths}

    embed_at(files, settings, job, schemas.LAYERS, layers_of)


def embed_at(
    files: EmbedFiles,
    settings: Embed | EmbedLayers,
    job: Job,
    kind: Table,
    layers_of: Callable[[PreTrainedModel], dict[str, int]],
) -> None:
    """Write a table of vectors, or a shard of it, with a column for each of the model's layers in
    ``layers_of``, all from one forward pass; with ``shards``, put these together."""
    from mamushi.io.shards import ranked, write_pieces
    from mamushi.io.tables import INFERENCE, read_metadata
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
