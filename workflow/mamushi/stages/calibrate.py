"""Estimate the log-density ratio of every text that is ranked, from raw scores.

The scores of the selector that estimates the ratio are recalibrated by cross-fitting, the refits
say how much of the ratio its noise hides, and checks that need no truth say whether the result is a
density ratio. What follows from them for a reader stands in the metadata as the verdict.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mamushi.running.identity import digest
from mamushi.running.stage import Job, reads, writes
from mamushi.stages._settings import Cell, Config


class Calibrate(Cell):
    """Settings of the stage ``calibrate``; ``selector`` is the one that estimates the ratio."""

    selector: str
    resamples: int


def settings(config: Config, dataset: str, model: str, seed: int) -> Calibrate:
    return Calibrate(
        dataset=dataset,
        model=model,
        seed=seed,
        selector=config["removal"]["ratio"],
        resamples=config["evidence"]["resamples"],
        code=digest(__name__),
    )


@dataclass(frozen=True, kw_only=True)
class Files:
    scores: Path = reads("scores of the selector that estimates the ratio")
    refits: Path = reads("their refits")
    out: Path = writes("the calibrated ratios to write")
    checks: Path = writes("the calibration table to write")


def run(files: Files, settings: Calibrate, job: Job) -> None:
    """Raises ``UserError`` for scores that lack one, or refits of other texts."""
    import pyarrow as pa

    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import read_metadata, read_table, write_table
    from mamushi.evidence.calibration import read_ratio
    from mamushi.evidence.verdict import checks, verdict

    scores, whole = read_ratio(files.scores, files.refits)
    estimate = scores.estimate()
    checked = checks(scores, estimate, settings.resamples, settings.seed)
    found = verdict(scores, whole, checked)
    table = read_table(files.scores, schemas.SCORES)
    write_table(
        files.out,
        schemas.CALIBRATED,
        {
            **{name: table[name] for name in ("id", "domain", "score")},
            "log_ratio": pa.array(estimate.log_ratio),
        },
        metadata={
            "provenance": job.origin,
            "sources": read_metadata(files.scores)["provenance"]["inputs"],
            "lost": estimate.lost,
            "verdict": found.as_json(),
        },
    )
    rows = [{**settings.cell, "selector": settings.selector, **row} for row in checked]
    write_table(
        files.checks,
        schemas.CALIBRATION,
        pa.Table.from_pylist(rows, schema=schemas.CALIBRATION.schema),
        metadata={"provenance": job.origin, "verdict": found.as_json()},
    )
    print(f"{files.out}: {found.as_json()['words']}")
