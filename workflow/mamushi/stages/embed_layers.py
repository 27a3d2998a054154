"""Embed the inference section at other depths of the contaminated model.

Apart from ``embed``: no ranking by the last layer depends on which other layers one asks for.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mamushi.configuration.settings import EmbedLayers, Opened
from mamushi.running.stage import Job, writes
from mamushi.stages import _models

GPU = True


@dataclass(frozen=True, kw_only=True)
class Files(_models.TextFiles, _models.ModelFiles):
    out: Path = writes("table of the layers to write")


def run(files: Files, chosen: EmbedLayers, job: Job) -> None:
    """Write ``layers``: a column of vectors for each of ``depths``, all from one forward pass."""
    import pyarrow as pa

    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import INFERENCE, read_metadata, write_table
    from mamushi.lm.embed import at_depth, embed
    from mamushi.lm.tokens import read_tokens
    from mamushi.selection.pool import column_of

    how = chosen.embedding
    model, accelerator = _models.opened(
        files, Opened(training=chosen.training, precision=how.precision)
    )
    texts = read_tokens(files.tokens, files.examples, INFERENCE, how.max_length)
    layers = [at_depth(depth, int(model.config.num_hidden_layers)) for depth in chosen.depths]
    vectors = embed(
        model,
        texts,
        pooling=how.pooling,
        layers=layers,
        skip_first=how.skip_bos and read_metadata(files.tokens)["bos_token_id"] is not None,
        batch_tokens=job.execution.batch_tokens,
        accelerator=accelerator,
    )
    columns = {"id": texts.ids, "domain": texts.domains}
    for depth, found in zip(chosen.depths, vectors, strict=True):
        columns[column_of(depth)] = pa.FixedSizeListArray.from_arrays(
            pa.array(found.reshape(-1)), found.shape[1]
        )
    told = {**job.origin, "layers": dict(zip(map(column_of, chosen.depths), layers, strict=True))}
    write_table(files.out, schemas.LAYERS, columns, metadata=told)
