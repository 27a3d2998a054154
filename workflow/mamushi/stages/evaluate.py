"""Perplexity of a kept model (base, contaminated, gold, beta 0) on the held-out sets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mamushi.configuration.sections import HeldOut
from mamushi.running import launch
from mamushi.running.identity import digest
from mamushi.running.stage import Job, writes
from mamushi.stages import _models
from mamushi.stages._settings import Config, Opened, Settings, held_out, opened

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mamushi.artifacts.shards import Piece

GPU = True


class Evaluate(Opened, Settings):
    """Settings of the stage ``evaluate``."""

    evaluation: HeldOut


def settings(config: Config, model: str, arm: str) -> Evaluate:
    return Evaluate(
        **vars(opened(config, model, arm)),
        evaluation=held_out(config),
        code=digest(__name__),
    )


@dataclass(frozen=True, kw_only=True)
class Files(_models.TextFiles, _models.ModelFiles, _models.Shards):
    out: Path | None = writes("perplexity table to write, but for a shard", default=None)
    nll: Path = writes("table of every text's NLL to write, or the shard of it")


def run(files: Files, settings: Evaluate, job: Job) -> None:
    """Measure the model, or write a shard of the texts' NLL; with ``shards``, sum these up."""
    import numpy as np

    from mamushi.artifacts import schemas
    from mamushi.artifacts.shards import read_shards, write_pieces
    from mamushi.artifacts.tables import EVALUATION, write_table
    from mamushi.lm.attention import supports
    from mamushi.lm.batches import pieces
    from mamushi.lm.perplexity import (
        TextNll,
        nll_table,
        perplexity_table,
        require_domains,
        text_nll,
    )
    from mamushi.lm.tokens import read_tokens, subset

    texts = read_tokens(files.tokens, files.examples, EVALUATION, settings.evaluation.max_length)
    require_domains(texts)
    if files.shards:
        blocks = read_shards(files.shards, len(texts), job.origin)
    else:
        model, accelerator = _models.opened(files, settings)
        batch_tokens = job.execution.batch_tokens

        def measured(rows: NDArray[np.int64]) -> Piece:
            nll = text_nll(model, subset(texts, rows), batch_tokens, accelerator).nll
            return rows, {"nll": nll}

        cut = pieces(texts.lengths, batch_tokens, shared=supports(model), shard=files.shard)
        parts, beside = map(measured, cut), launch.is_secondary()
        if files.shard:
            write_pieces(files.nll, schemas.NLL, parts, {}, job.origin, files.shard, beside=beside)
            return
        blocks = (columns for _, columns in parts)
    found = np.concatenate([columns["nll"] for columns in blocks])
    nll = TextNll(found, np.maximum(texts.lengths - 1, 0))
    table = perplexity_table(nll, texts.domains)
    if files.out and not launch.is_secondary():
        write_table(files.out, schemas.PERPLEXITY, table, metadata=job.origin)
        write_table(files.nll, schemas.NLL, nll_table(nll, texts.ids), metadata=job.origin)
