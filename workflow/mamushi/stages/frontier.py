"""Estimate the removal-preservation frontier of a run's selectors, before any retraining.

For every selector and budget, 0 and 1 included: KL(p1 || p_-S) and KL(p2 || p_-S) by the calibrated
log-density ratio, with bands over the texts, the calibration and what the scores have lost, and for
a dataset that knows its densities the exact values beside them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mamushi.errors import UserError
from mamushi.running.identity import digest
from mamushi.running.stage import Job, option, reads, writes
from mamushi.stages._settings import Cell, Config, by_chance

if TYPE_CHECKING:
    import numpy as np


class Frontier(Cell):
    """Settings of the stage ``frontier``; ``by_chance`` says of each selector whether it ranks
    without a look at the texts."""

    budgets: list[float]
    by_chance: dict[str, bool]
    resamples: int


def settings(config: Config, dataset: str, model: str, seed: int) -> Frontier:
    return Frontier(
        dataset=dataset,
        model=model,
        seed=seed,
        budgets=sorted({*config["evidence"]["budgets"], *config["grid"]["budgets"]}),
        by_chance=by_chance(config, config["grid"]["selectors"]),
        resamples=config["evidence"]["resamples"],
        code=digest(__name__),
    )


@dataclass(frozen=True, kw_only=True)
class Files:
    examples: Path = reads("the examples table")
    scores: list[Path] = reads("scores to rank by", named_by="selectors")
    selectors: list[str] = option("the selector of each, in the same order")
    ratio: Path = reads("scores that estimate the log-density ratio")
    refits: Path = reads("their refits")
    calibrated: Path = reads("the calibrated ratio, with the verdict on it")
    out: Path = writes("the frontier table to write")


def run(files: Files, settings: Frontier, job: Job) -> None:
    """Raises ``UserError`` for scores of other examples, or a ratio that lacks a score."""
    import numpy as np
    import pyarrow as pa

    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import read_metadata, read_table, write_table
    from mamushi.evidence.bootstrap import bands, exact, rows
    from mamushi.evidence.calibration import read_ratio
    from mamushi.evidence.frontier import ranking_of
    from mamushi.evidence.truth import truth_of
    from mamushi.selection.removals import budget_of

    ratio = read_table(files.ratio, schemas.SCORES)
    made = {files.ratio: _sources(read_metadata(files.ratio), files.ratio)}
    rankings = {}
    for name, path in zip(files.selectors, files.scores, strict=True):
        made[path] = _sources(read_metadata(path), path)
        if made[path] != made[files.ratio]:
            raise UserError(
                f"was made from other examples or embeddings than {files.ratio}",
                where=path,
                do="delete both and score again",
            )
        scores = read_table(path, schemas.SCORES)
        rankings[name] = ranking_of(scores, bool(settings.by_chance.get(name, False)))
    budgets = sorted({0.0, 1.0, *map(float, settings.budgets)})
    counts = np.array([budget_of(beta, ratio) for beta in budgets])
    estimated, _ = read_ratio(files.ratio, files.refits)
    found = bands(estimated, rankings, counts, settings.resamples, settings.seed)
    truth = truth_of(read_table(files.examples, schemas.EXAMPLES), ratio)
    table = []
    for name, ranks in rankings.items():
        exactly = None if truth is None else exact(ranks, truth, counts)
        along = rows(found[name], exactly, len(counts))
        table += [
            {**settings.cell, "selector": name, "beta": beta, "removed": int(k), **row}
            for beta, k, row in zip(budgets, counts, along, strict=True)
        ]
    write_table(
        files.out,
        schemas.FRONTIER,
        pa.Table.from_pylist(table, schema=schemas.FRONTIER.schema),
        metadata={
            "provenance": job.origin,
            "verdict": read_metadata(files.calibrated)["verdict"],
            # What the advisor reads: it has targets relative to the ends of a curve, whose bands
            # do not follow from those of the curve.
            "relative": {
                name: {
                    f"{what}{end}": _listed(getattr(one[what], part))
                    for what in ("gain", "decline")
                    for end, part in (("", "value"), ("_low", "low"), ("_high", "high"))
                }
                for name, one in found.items()
            },
        },
    )


def _sources(stored: dict[str, Any], path: Path) -> dict[str, str]:

    try:
        inputs = stored["provenance"]["inputs"]
        return {name: inputs[name] for name in ("examples", "embeddings")}
    except KeyError:
        raise UserError(
            "does not say what it was made from", where=path, do="delete it and score again"
        ) from None


def _listed(values: np.ndarray[Any, Any]) -> list[float | None]:
    return [None if value != value else float(value) for value in values]
