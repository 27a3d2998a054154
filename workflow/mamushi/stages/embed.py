"""The inference section as vectors of the contaminated model, at its last layer or at others."""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mamushi.config.kinds import Config
from mamushi.config.models import Trained
from mamushi.config.sections import PooledLayer, PooledLayers
from mamushi.config.settings import Settings, setting
from mamushi.running.stage import Input, Job, Output
from mamushi.stages._models import OpenedArm, open_arm

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from mamushi.io.schemas import Table
    from mamushi.io.vectors import Columns

GPU = ("embed", "embed_layers")


def training_of(config: Config, model: str) -> Any:
    """Return how the contaminated model was trained; None of a model that embeds as it is."""
    return OpenedArm.of(config, model=model, arm="contaminated").training


class Embed(Settings):
    """How the contaminated model was trained and embeds."""

    embedding: PooledLayer = setting("embedding")
    training: Trained | None = setting(training_of)


class EmbedLayers(Embed):
    """As those of ``embed``, with shares of the model's blocks."""

    embedding: PooledLayers = setting("embedding")  # type: ignore[assignment]


def embed(
    *,
    examples: Input,
    tokens: Input,
    model_card: Input,
    trained: Input | None = None,
    out: Output,
    settings: Embed,
    job: Job,
) -> None:
    """Embed the inference section with the contaminated model. A killed job goes on behind the last
    block of texts that it has finished."""
    from mamushi.io.schemas import EMBEDDINGS

    layers, files = {"embedding": settings.embedding.layer}, (examples, tokens, model_card, trained)
    _embed_at(files, settings, job, lambda _: layers, (out, EMBEDDINGS))


def embed_layers(
    *,
    examples: Input,
    tokens: Input,
    model_card: Input,
    trained: Input | None = None,
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
        return {column_of(depth): at_depth(depth, blocks) for depth in settings.embedding.depths}

    files = (examples, tokens, model_card, trained)
    _embed_at(files, settings, job, layers_of, (out, LAYERS))


def _embed_at(
    files: tuple[Path, Path, Path, Path | None],
    settings: Embed,
    job: Job,
    layers_of: Callable[[PreTrainedModel], dict[str, int]],
    table: tuple[Path, Table],
) -> None:
    """Write a table of vectors with a column for each of the model's layers in ``layers_of``, all
    from one forward pass. Blocks of several stay in a folder beside it until all are there."""
    import numpy as np

    from mamushi.io.tables import INFERENCE, read_metadata
    from mamushi.io.vectors import BLOCK, ranked, read_vectors, write_vectors
    from mamushi.lm.embed import embed
    from mamushi.lm.tokens import read_tokens, subset

    examples, tokens, model_card, trained = files
    embedding, (out, kind) = settings.embedding, table
    opened = OpenedArm(training=settings.training, precision=embedding.precision)
    model, accelerator = open_arm(model_card, trained, None, opened)
    layers = layers_of(model)
    texts = read_tokens(tokens, examples, INFERENCE, embedding.max_length)
    skip_first = embedding.skip_bos and read_metadata(tokens)["bos_token_id"] is not None
    # The table of one layer has it among the settings.
    metadata = job.origin if "embedding" in layers else {**job.origin, "layers": layers}
    columns, folder = ranked(examples), out.with_name(f"{out.name}.blocks")
    finished = {path.stem for path in folder.glob("*.parquet") if read_metadata(path) == metadata}

    def block(start: int) -> Columns:
        path = folder / f"{start}.parquet"
        if path.stem in finished:
            return read_vectors(path, kind)
        vectors = embed(
            model,
            subset(texts, np.arange(start, min(start + BLOCK, len(texts)))),
            pooling=embedding.pooling,
            layers=list(layers.values()),
            skip_first=skip_first,
            batch_tokens=job.execution.batch_tokens,
            accelerator=accelerator,
        )
        of_block = dict(zip(layers, vectors, strict=True))
        if accelerator.is_main_process and len(texts) > BLOCK:
            names = {name: column.slice(start, BLOCK) for name, column in columns.items()}
            write_vectors(path, kind, [of_block], names, metadata)
        return of_block

    blocks = map(block, range(0, len(texts), BLOCK))
    if accelerator.is_main_process:
        write_vectors(out, kind, blocks, columns, metadata)
        shutil.rmtree(folder, ignore_errors=True)
    else:
        deque(blocks, maxlen=0)


class WordVectors(Settings):
    """How wide the vectors are."""

    embedding: dict[str, int] = setting(
        lambda config, model: {"words": config["models"][model]["embeddings"]["words"]}
    )


def word_vectors(*, examples: Input, out: Output, settings: WordVectors, job: Job) -> None:
    """Make the embeddings table of the words of the inference section alone."""
    import pyarrow as pa

    from mamushi.io import schemas
    from mamushi.io.tables import write_table
    from mamushi.io.vectors import ranked
    from mamushi.selection.word_vectors import components_of_words

    texts = ranked(examples, "text")
    vectors = components_of_words(texts["text"].to_pylist(), settings.embedding["words"])
    lists = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1])
    columns = {"id": texts["id"], "domain": texts["domain"], "embedding": lists}
    write_table(out, schemas.EMBEDDINGS, columns, metadata=job.origin)
