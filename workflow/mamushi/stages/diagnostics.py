"""Describe the scores of a run: spread, separation of the domains, calibration, folds.

Reads the scores of any number of selectors and writes a row for each. What a score has not, because
its selector has none for retain examples or uses no folds, is left empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mamushi.running.identity import digest
from mamushi.running.stage import Job, option, reads, writes
from mamushi.stages._settings import Cell, Config


class Diagnostics(Cell):
    """Settings of the stage ``diagnostics``."""


def settings(config: Config, dataset: str, model: str, seed: int) -> Diagnostics:
    return Diagnostics(dataset=dataset, model=model, seed=seed, code=digest(__name__))


@dataclass(frozen=True, kw_only=True)
class Files:
    scores: list[Path] = reads("scores tables", named_by="selectors")
    selectors: list[str] = option("their selectors, in the same order")
    out: Path = writes("the diagnostics table to write")


def run(files: Files, settings: Diagnostics, job: Job) -> None:
    """Write ``diagnostics``. Raises ``UserError`` for a missing or damaged file."""
    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import write_table
    from mamushi.evidence.diagnostics import diagnose, read_scores

    rows = [
        {**settings.cell, "selector": name, **diagnose(read_scores(path))}
        for name, path in zip(files.selectors, files.scores, strict=True)
    ]
    write_table(
        files.out,
        schemas.DIAGNOSTICS,
        {key: [row[key] for row in rows] for key in rows[0]},
        metadata={"provenance": job.origin},
    )
