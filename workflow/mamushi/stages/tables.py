"""Collect a grid's measurements in the result tables: SAD, what differs, quality of the scores."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mamushi.configuration import grid
from mamushi.running.identity import digest
from mamushi.running.stage import Job, root, writes
from mamushi.stages._settings import Collected, Config


def settings(config: Config, study: str | None = None) -> Collected:
    return Collected(grid=grid.comparison(config, study), code=digest(__name__))


@dataclass(frozen=True, kw_only=True)
class Files:
    root: Path = root()
    out_folder: Path = writes("where to write the tables")


def run(files: Files, settings: Collected, job: Job) -> None:
    """Write ``sad``, ``sad_summary``, ``sad_differences`` and ``selection``, as Parquet and as CSV.

    ``sad_differences.rst`` says in words which curves differ, for the report. Raises ``UserError``
    that names the first missing or damaged input; nothing is written then.
    """
    from mamushi.artifacts import schemas
    from mamushi.artifacts.files import atomic
    from mamushi.artifacts.tables import publish
    from mamushi.evaluation.curves import sad_table
    from mamushi.evaluation.quality import selection_table
    from mamushi.evaluation.summary import sad_differences, sad_summary, verdict

    sad = sad_table(settings.grid, files.root)
    differences = sad_differences(sad)
    tables = [
        (schemas.SAD, sad),
        (schemas.SAD_SUMMARY, sad_summary(sad)),
        (schemas.SAD_DIFFERENCES, differences),
        (schemas.SELECTION, selection_table(settings.grid, files.root)),
    ]
    publish(files.out_folder, tables, job.origin)
    with atomic(files.out_folder / "sad_differences.rst") as part:
        part.write_text(verdict(differences), encoding="utf-8")
