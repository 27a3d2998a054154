"""The inference section as vectors of the contaminated model."""

from __future__ import annotations

import shutil
from typing import Any

from mamushi.config.kinds import Settings, setting
from mamushi.config.sections import Embedding
from mamushi.running.stage import Input, Job, Output
from mamushi.stages._models import open_arm

GPU = ("embed",)
BLOCK = 131072
"""Texts: eight row groups of a table of vectors, 1 GiB at a width of 4,096."""


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

    from mamushi.io.digests import fingerprint
    from mamushi.io.files import atomic
    from mamushi.io.tables import INFERENCE, read_metadata
    from mamushi.io.vectors import ranked, write_vectors
    from mamushi.lm.embed import embed
    from mamushi.lm.tokens import read_tokens, subset

    how = settings.embedding
    model, accelerator = open_arm(model_card, trained, None, how.precision)
    texts = read_tokens(tokens, examples, INFERENCE, how.max_length)
    skip_first = how.skip_bos and read_metadata(tokens)["bos_token_id"] is not None
    folder = out.with_name(f"{out.name}.blocks")
    finished, name = {*folder.glob("*.npy")}, fingerprint(job.origin)

    def block(start: int) -> Any:
        path = folder / f"{name}-{start}.npy"
        if path in finished:
            return np.load(path)
        rows = np.arange(start, min(start + BLOCK, len(texts)))
        (vectors,) = embed(
            model,
            subset(texts, rows),
            pooling=how.pooling,
            layers=[how.layer],
            skip_first=skip_first,
            batch_tokens=job.execution.batch_tokens,
            accelerator=accelerator,
        )
        if accelerator.is_main_process and len(texts) > BLOCK:
            with atomic(path) as part, part.open("wb") as file:
                np.save(file, vectors)
        return vectors

    blocks = map(block, range(0, len(texts), BLOCK))
    if accelerator.is_main_process:
        write_vectors(out, blocks, ranked(examples), job.origin)
        shutil.rmtree(folder, ignore_errors=True)
    for _ in blocks:
        pass
