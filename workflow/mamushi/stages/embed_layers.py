"""Embed the inference section at other depths of the contaminated model.

Apart from ``embed``: no ranking by the last layer depends on which other layers one asks for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mamushi.configuration.settings import EmbedLayers, Opened
from mamushi.running import launch
from mamushi.running.stage import Job
from mamushi.stages import _models

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mamushi.artifacts.pieces import Piece

GPU = True


@dataclass(frozen=True, kw_only=True)
class Files(_models.TextFiles, _models.ModelFiles, _models.VectorFiles):
    """A language model, and texts as its tokens."""


def run(files: Files, chosen: EmbedLayers, job: Job) -> None:
    """Write ``layers``: a column of vectors for each of ``depths``, all from one forward pass. Or a
    shard of them; with ``shards``, put these together."""
    from mamushi.artifacts import schemas
    from mamushi.artifacts.pieces import ranked, write_pieces
    from mamushi.artifacts.tables import INFERENCE, read_metadata
    from mamushi.lm.attention import supports
    from mamushi.lm.batches import pieces
    from mamushi.lm.embed import at_depth, embed
    from mamushi.lm.tokens import read_tokens, subset
    from mamushi.selection.pool import column_of

    if _models.joined(files, schemas.LAYERS, job):
        return
    how, batch_tokens = chosen.embedding, job.execution.batch_tokens
    model, accelerator = _models.opened(
        files, Opened(training=chosen.training, precision=how.precision)
    )
    texts = read_tokens(files.tokens, files.examples, INFERENCE, how.max_length)
    layers = [at_depth(depth, int(model.config.num_hidden_layers)) for depth in chosen.depths]
    columns = [column_of(depth) for depth in chosen.depths]
    skip_first = how.skip_bos and read_metadata(files.tokens)["bos_token_id"] is not None

    def embedded(rows: NDArray[np.int64]) -> Piece:
        vectors = embed(
            model,
            subset(texts, rows),
            pooling=how.pooling,
            layers=layers,
            skip_first=skip_first,
            batch_tokens=batch_tokens,
            accelerator=accelerator,
        )
        return rows, dict(zip(columns, vectors, strict=True))

    cut = pieces(texts.lengths, batch_tokens, shared=supports(model), shard=files.shard)
    found, of = map(embedded, cut), ranked(files.examples)
    told = {**job.origin, "layers": dict(zip(columns, layers, strict=True))}
    write_pieces(
        files.out, schemas.LAYERS, found, of, told, files.shard, beside=launch.is_secondary()
    )
