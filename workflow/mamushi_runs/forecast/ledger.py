"""Forecasts of past runs and what became of them: results/plan, one JSON file for each run."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

from mamushi.artifacts.files import read_json, write_json
from mamushi.errors import UserError
from mamushi_runs.forecast.forecast import Overhead

FOLDER = "results/plan"
FORMAT = 1
LAST = 10
"""Runs that the overhead of the next one is taken from."""


def new(root: str | os.PathLike[str] = ".") -> Path:
    """The path of a record that a run begins now."""
    stamp = time.strftime("%Y%m%dT%H%M%S")
    return Path(root, FOLDER, f"{stamp}-{os.getpid()}.json")


def write(path: Path, forecast: Mapping[str, Any], actual: Mapping[str, Any] | None) -> None:
    """Keep a forecast, and after the run what it took."""
    write_json(path, {"format": FORMAT, "forecast": dict(forecast), "actual": actual})


def finished(root: str | os.PathLike[str] = ".") -> list[dict[str, Any]]:
    """What the last runs that succeeded on one machine took; the newest comes last."""
    found = []
    for path in sorted(Path(root, FOLDER).glob("*.json"))[-3 * LAST :]:
        try:
            record = read_json(path)
        except (OSError, UserError):
            continue
        if not isinstance(record, dict) or record.get("format") != FORMAT:
            continue
        actual = record.get("actual")
        if isinstance(actual, dict) and actual.get("succeeded") and not actual.get("cluster"):
            found.append(actual)
    return found[-LAST:]


def overhead(begun: float, root: str | os.PathLike[str] = ".") -> Overhead:
    """What Snakemake takes on top of the jobs, learned from past runs here.

    ``begun`` are the processor seconds that it has taken until now, before the first job.
    """
    usual = Overhead()
    rates = [
        (actual["cpu_seconds"] - actual["jobs_cpu_seconds"] - actual["begun_cpu_seconds"])
        / actual["done"]
        for actual in finished(root)
        # Of a few jobs, the overhead is mostly what a run has once.
        if actual["done"] >= 5
    ]
    if not rates:
        return Overhead(begun, usual.cpu_of_job, usual.wall_of_job)
    return Overhead(begun, max(0.0, median(rates)), usual.wall_of_job)
