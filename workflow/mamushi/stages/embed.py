"""The inference section as vectors of the contaminated model, at its last layer or at others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mamushi.config.kinds import Config, Section
from mamushi.config.models import Trained
from mamushi.config.sections import PooledLayer, Pooling
from mamushi.running.stage import Input, Job, Output, typed
from mamushi.stages._models import OpenedArm, open_arm

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from transformers import PreTrainedModel

    from mamushi.io.schemas import Table
    from mamushi.io.shards import Piece

GPU = ("embed", "embed_layers")


class Embed(Section):
    """No ``training`` for a model that embeds as it is."""

    embedding: PooledLayer
    training: Trained | None

    @classmethod
    def of(cls, config: Config, *, model: str) -> Embed:
        """Return how the contaminated model embeds."""
        opened = OpenedArm.of(config, model=model, arm="contaminated")
        return typed(cls, embedding=config["embedding"], training=opened.training)


class EmbedLayers(Section):
    """As those of ``embed``, with shares of the model's blocks."""

    embedding: Pooling
    training: Trained | None
    depths: list[float]

    @classmethod
    def of(cls, config: Config, *, model: str) -> EmbedLayers:
        """Return how the contaminated model embeds at other depths."""
        embedding = config["embedding"]
        opened = OpenedArm.of(config, model=model, arm="contaminated")
        return typed(cls, embedding=embedding, training=opened.training, depths=embedding["depths"])


def embed(
    *,
    examples: Input,
    tokens: Input,
    model_card: Input,
    trained: Input | None = None,
    shard: str | None = None,
    out: Output,
    settings: Embed,
    job: Job,
) -> None:
    """Embed the inference section with the contaminated model: all of it, or a ``shard`` such as
    2-of-8."""
    from mamushi.io.schemas import EMBEDDINGS

    layers, files = {"embedding": settings.embedding.layer}, (examples, tokens, model_card, trained)
    _embed_at(files, settings, job, lambda _: layers, shard, (out, EMBEDDINGS))


def embed_layers(
    *,
    examples: Input,
    tokens: Input,
    model_card: Input,
    trained: Input | None = None,
    shard: str | None = None,
    out: Output,
    settings: EmbedLayers,
    job: Job,
) -> None:
    """Embed the inference section at other depths of the contaminated model: a column for each.

    Apart from ``embed``: no ranking by the last layer depends on which other layers one asks for.
    """
    from mamushi.io.schemas import LAYERS
    from mamushi.lm.embed import at_depth
    from mamushi.selection.pool import column_of

    def layers_of(model: PreTrainedModel) -> dict[str, int]:
        blocks = int(model.config.num_hidden_layers)
        return {column_of(depth): at_depth(depth, blocks) for depth in settings.depths}

    files = (examples, tokens, model_card, trained)
    _embed_at(files, settings, job, layers_of, shard, (out, LAYERS))


def _embed_at(
    files: tuple[Path, Path, Path, Path | None],
    settings: Embed | EmbedLayers,
    job: Job,
    layers_of: Callable[[PreTrainedModel], dict[str, int]],
    shard: str | None,
    table: tuple[Path, Table],
) -> None:
    """Write a table of vectors, or a shard of it, with a column for each of the model's layers in
    ``layers_of``, all from one forward pass."""
    from mamushi.io.shards import ranked, write_pieces
    from mamushi.io.tables import INFERENCE, read_metadata
    from mamushi.lm.attention import supports
    from mamushi.lm.batches import pieces
    from mamushi.lm.embed import embed
    from mamushi.lm.tokens import read_tokens, subset

    examples, tokens, model_card, trained = files
    embedding, batch_tokens = settings.embedding, job.execution.batch_tokens
    opened = OpenedArm(training=settings.training, precision=embedding.precision)
    model, accelerator = open_arm(model_card, trained, None, opened)
    layers = layers_of(model)
    texts = read_tokens(tokens, examples, INFERENCE, embedding.max_length)
    skip_first = embedding.skip_bos and read_metadata(tokens)["bos_token_id"] is not None

    def embedded(rows: NDArray[np.int64]) -> Piece:
        vectors = embed(
            model,
            subset(texts, rows),
            pooling=embedding.pooling,
            layers=list(layers.values()),
            skip_first=skip_first,
            batch_tokens=batch_tokens,
            accelerator=accelerator,
        )
        return rows, dict(zip(layers, vectors, strict=True))

    batches = pieces(texts.lengths, batch_tokens, shared=supports(model), shard=shard)
    # The table of one layer has it among the settings.
    metadata = job.origin if "embedding" in layers else {**job.origin, "layers": layers}
    path, schema = table
    beside, made = not accelerator.is_main_process, map(embedded, batches)
    write_pieces(path, schema, made, ranked(examples), metadata, shard, beside=beside)


class WordVectors(Section):
    """How wide the vectors are."""

    embedding: dict[Literal["words"], int]

    @classmethod
    def of(cls, config: Config, *, model: str) -> WordVectors:
        """Return how texts become vectors without a model."""
        return cls(embedding={"words": config["models"][model]["embeddings"]["words"]})


def word_vectors(*, examples: Input, out: Output, settings: WordVectors, job: Job) -> None:
    """Make the embeddings table of the words of the inference section alone."""
    import pyarrow as pa

    from mamushi.io import schemas
    from mamushi.io.shards import ranked
    from mamushi.io.tables import write_table
    from mamushi.selection.word_vectors import components_of_words

    texts = ranked(examples, "text")
    vectors = components_of_words(texts["text"].to_pylist(), settings.embedding["words"])
    lists = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1])
    columns = {"id": texts["id"], "domain": texts["domain"], "embedding": lists}
    write_table(out, schemas.EMBEDDINGS, columns, metadata=job.origin)


class JoinShards(Section):
    """The table whose shards are joined."""

    table: Literal["embeddings", "layers"]

    @classmethod
    def of(cls, config: Config, *, table: str) -> JoinShards:
        """Return the settings for a table of vectors."""
        return typed(cls, table=table)


def join_shards(
    *, examples: Input, shards: list[Input], out: Output, settings: JoinShards, job: Job
) -> None:
    """Put the shards of a table of vectors together, byte by byte as one job would have made it."""
    from mamushi.io import schemas
    from mamushi.io.shards import join_shards, ranked

    schema = {"embeddings": schemas.EMBEDDINGS, "layers": schemas.LAYERS}[settings.table]
    join_shards(out, schema, shards, ranked(examples), job.origin["inputs"]["examples"])
