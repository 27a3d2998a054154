"""Collect how much of SAD at budget 0 is the number of steps alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mamushi.configuration.settings import Collected
from mamushi.running.stage import Job, root, writes


@dataclass(frozen=True, kw_only=True)
class Files:
    root: Path = root()
    out_folder: Path = writes("where to write the table")


def run(files: Files, chosen: Collected, job: Job) -> None:
    """Write ``steps`` as Parquet and as CSV.

    Raises ``UserError`` that names the first missing or damaged input; nothing is written then.
    """
    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import publish
    from mamushi.evaluation.curves import steps_table

    table = steps_table(chosen.grid, files.root)
    publish(files.out_folder, [(schemas.STEPS, table)], job.origin)
