"""Texts in memory as vectors of a model, or by their influence, by the stages that measure those of
a file."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from mamushi.config import selectors
from mamushi.config.sections import Execution
from mamushi.io import schemas
from mamushi.io.domains import INFERENCE
from mamushi.io.tables import write_table
from mamushi.lm.tokens import TokenSet, read_tokens
from mamushi.running.stage import Job, stages
from mamushi.selection.pool import Pool, read_pool
from mamushi_extras.influence.pooling import summed_influence
from mamushi_extras.influence.settings import by_influence

DATASET, MODEL = "frame", "model"
"""What the configuration calls them."""


def embed_texts(config: Mapping[str, Any], examples: pa.Table) -> tuple[Pool, TokenSet]:
    """Embed the texts by the stages that embed those of a file, in a folder that is gone then.
    Return them with their tokens, as trainings cut these, and with their influence where the
    selector ranks by it. Raises ``UserError`` as the stages do."""
    from mamushi.lm import device

    execution = msgspec.convert(config["execution"], Execution)
    with device.unchanged(), tempfile.TemporaryDirectory(prefix="mamushi-") as temporary:
        folder = Path(temporary)
        card, layers = folder / MODEL / "card.json", None
        table, tokens, out = (folder / f"{n}.parquet" for n in ("examples", "tokens", "embeddings"))
        write_table(table, schemas.EXAMPLES, examples)

        def run(name: str, wildcards: Mapping[str, Any], **files: Path) -> None:
            stage = stages()[name]
            Job(stage, files, stage.settings.of(config, **wildcards), {}, execution).run()

        of_model = {"model": MODEL}
        run("model-card", of_model, out=card)
        files = {"examples": table, "model_card": card}
        run("tokens", {}, out=tokens, **files)
        files |= {"tokens": tokens}
        run("embed", of_model, out=out, **files)
        (name,) = config["grid"]["selectors"]
        if selectors.reads_layers(config, name):
            layers = folder / "layers.parquet"
            run("embed-layers", of_model, out=layers, **files)
        cut = config["models"][MODEL]["training"]["max_length"]
        pool = read_pool(out, table, layers=layers, texts=True)
        if by_influence(config):
            cell = {"dataset": DATASET, "seed": config["grid"]["seeds"][0], **of_model}
            run("influence", cell, out=(measured := folder / "influence.parquet"), **files)
            pool = pool.with_columns(influence=summed_influence(measured, pool.ids.tolist()))
        return pool, read_tokens(tokens, table, INFERENCE, cut)
