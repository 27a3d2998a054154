"""Rank the forget set by one selector.

Reads the embeddings of the inference section and writes the scores: one full ranking, from which
the removals at every budget are taken. The file's metadata say what it was made from, how well the
score separates the domains (AUC) and, for synthetic data, how well it follows the truth (Spearman).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mamushi.errors import UserError
from mamushi.registry import plugin
from mamushi.running.identity import digest
from mamushi.running.stage import Job, reads, writes
from mamushi.stages._settings import Config, SelectorSettings, Settings, selector


class Score(SelectorSettings, Settings):
    """Settings of the stage ``score``."""

    seed: int


def settings(config: Config, name: str, seed: int) -> Score:
    definition = selector(config, name)
    module = plugin("selector", definition.kind).module
    return Score(**vars(definition), seed=seed, code=digest(__name__, module))


@dataclass(frozen=True, kw_only=True)
class Files:
    examples: Path = reads("the examples table")
    embeddings: Path = reads("their embeddings")
    layers: Path | None = reads("the texts at other depths of the model", default=None)
    base: Path | None = reads("scores of the selector that this derives from", default=None)
    out: Path = writes("the scores table to write")


def run(files: Files, settings: Score, job: Job) -> None:
    import numpy as np
    import pyarrow as pa

    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import read_metadata, write_table
    from mamushi.registry import load, plugin
    from mamushi.running.machine import conditions
    from mamushi.selection.metrics import quality
    from mamushi.selection.pool import columns_of, rank, read_pool

    found = plugin("selector", settings.kind)
    derives = found.literals.get("DERIVES")
    if (derives is None) != (files.base is None):
        raise UserError(
            f"selector {settings.kind!r} "
            + ("derives from no other" if derives is None else "derives from another"),
            where="--base",
            do="leave it out" if derives is None else f"give the scores of its setting {derives!r}",
        )
    pool = read_pool(
        files.embeddings,
        files.examples,
        files.base,
        layers=files.layers,
        texts=found.literals.get("READS_TEXTS", False),
    )
    scored = load("selector", settings.kind).score(pool, settings.settings, settings.seed)
    order = rank(pool, scored)
    ranks = np.zeros(len(pool.ids), dtype=np.int64)
    ranks[order] = np.arange(1, len(order) + 1)
    write_table(
        files.out,
        schemas.SCORES,
        columns_of(pool, scored) | {"rank": pa.array(ranks, mask=~pool.forget)},
        metadata={
            "provenance": job.origin,
            # Carried along, so that a removal list names its model without opening the embeddings.
            "embedded": read_metadata(files.embeddings),
            "details": quality(pool, scored),
            "conditions": conditions(),
        },
    )
