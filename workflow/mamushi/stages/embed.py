"""The inference section as vectors of the contaminated model."""

from __future__ import annotations

from mamushi.config.sections import Embedding
from mamushi.config.settings import Settings, setting
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
    """Embed the inference section with the contaminated model, and write it block by block."""
    import numpy as np

    from mamushi.io.tables import INFERENCE, read_metadata
    from mamushi.io.vectors import ranked, write_vectors
    from mamushi.lm.embed import embed
    from mamushi.lm.tokens import read_tokens, subset

    how = settings.embedding
    model, accelerator = open_arm(model_card, trained, None, how.precision)
    texts = read_tokens(tokens, examples, INFERENCE, how.max_length)
    blocks = (
        embed(
            model,
            subset(texts, np.arange(start, min(start + BLOCK, len(texts)))),
            pooling=how.pooling,
            layers=[how.layer],
            skip_first=how.skip_bos and read_metadata(tokens)["bos_token_id"] is not None,
            batch_tokens=job.execution.batch_tokens,
            accelerator=accelerator,
        )[0]
        for start in range(0, len(texts), BLOCK)
    )
    if accelerator.is_main_process:
        write_vectors(out, blocks, ranked(examples), job.origin)
    for _ in blocks:
        pass
