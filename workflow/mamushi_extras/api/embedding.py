"""Texts in memory as vectors of a model, by the stages that embed those of a file."""

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
from mamushi.io.model_files import is_gguf
from mamushi.io.tables import write_table
from mamushi.lm.tokens import TokenSet, read_tokens
from mamushi.running.stage import Job, stages
from mamushi.selection.pool import Pool, read_pool

DATASET, MODEL = "frame", "model"
"""What the configuration calls them."""


def embed_texts(config: Mapping[str, Any], examples: pa.Table) -> tuple[Pool, TokenSet]:
    """Embed the texts by the stages that embed those of a file, in a folder that is gone then.
    Return them with their tokens, as trainings cut these."""
    from mamushi.lm import device

    execution = msgspec.convert(config["execution"], Execution)
    source = Path(config["models"][MODEL]["source"])
    with device.unchanged(), tempfile.TemporaryDirectory(prefix="mamushi-") as temporary:
        folder = Path(temporary)
        card, layers = folder / MODEL / "card.json", None
        table, tokens, out = (folder / f"{n}.parquet" for n in ("examples", "tokens", "embeddings"))
        write_table(table, schemas.EXAMPLES, examples)

        def run(name: str, *wildcards: str, **files: Path) -> None:
            stage = stages()[name]
            settings = stage.settings.of(config, **dict.fromkeys(wildcards, MODEL))
            Job(stage, files, settings, {}, execution).run()

        if is_gguf(config["models"][MODEL]):
            run("convert", "model", gguf=source, out=card.parent)
        else:
            run("model-card", "model", out=card)
        files = {"examples": table, "model_card": card}
        run("tokens", out=tokens, **files)
        files |= {"tokens": tokens}
        run("embed", "model", out=out, **files)
        (name,) = config["grid"]["selectors"]
        if selectors.reads_layers(config, name):
            layers = folder / "layers.parquet"
            run("embed-layers", "model", out=layers, **files)
        cut = config["models"][MODEL]["training"]["max_length"]
        pool = read_pool(out, table, layers=layers, texts=True)
        return pool, read_tokens(tokens, table, INFERENCE, cut)
