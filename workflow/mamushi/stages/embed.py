"""The inference section as vectors: of the contaminated model, or of the words."""

from __future__ import annotations

import shutil
from collections import deque
from typing import TYPE_CHECKING

from mamushi.config.sections import Embedding
from mamushi.config.settings import Settings, setting
from mamushi.running.stage import Input, Job, Output
from mamushi.stages._models import open_arm

if TYPE_CHECKING:
    from numpy.typing import NDArray

GPU = ("embed",)


class Embed(Settings):
    """How the contaminated model embeds."""

    embedding: Embedding = setting("embedding")


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
    import numpy as np

    from mamushi.io.tables import INFERENCE, read_metadata
    from mamushi.io.vectors import BLOCK, ranked, read_vectors, write_vectors
    from mamushi.lm.embed import embed
    from mamushi.lm.tokens import read_tokens, subset

    embedding = settings.embedding
    model, accelerator = open_arm(model_card, trained, None, embedding.precision)
    texts = read_tokens(tokens, examples, INFERENCE, embedding.max_length)
    skip_first = embedding.skip_bos and read_metadata(tokens)["bos_token_id"] is not None
    # Blocks of several stay in a folder beside the table until all are there.
    columns, folder = ranked(examples), out.with_name(f"{out.name}.blocks")
    finished = {path.stem for path in folder.glob("*.parquet") if read_metadata(path) == job.origin}

    def block(start: int) -> NDArray[np.float16]:
        path = folder / f"{start}.parquet"
        if path.stem in finished:
            return read_vectors(path)
        (vectors,) = embed(
            model,
            subset(texts, np.arange(start, min(start + BLOCK, len(texts)))),
            pooling=embedding.pooling,
            layers=[embedding.layer],
            skip_first=skip_first,
            batch_tokens=job.execution.batch_tokens,
            accelerator=accelerator,
        )
        if accelerator.is_main_process and len(texts) > BLOCK:
            names = {name: column.slice(start, BLOCK) for name, column in columns.items()}
            write_vectors(path, [vectors], names, job.origin)
        return vectors

    blocks = map(block, range(0, len(texts), BLOCK))
    if accelerator.is_main_process:
        write_vectors(out, blocks, columns, job.origin)
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
    from mamushi.io.vectors import blocks_of, ranked, write_vectors
    from mamushi.selection.word_vectors import components_of_words

    texts = ranked(examples, "text")
    vectors = components_of_words(texts["text"].to_pylist(), settings.embedding["words"])
    columns = {name: texts[name] for name in ("id", "domain")}
    write_vectors(out, blocks_of(vectors), columns, job.origin)
