"""Collect who pays for a removal: how the loss of held-out texts changes, by their labels."""

from __future__ import annotations

from mamushi.configuration import grid
from mamushi.running.identity import digest
from mamushi.running.stage import Job
from mamushi.stages._collecting import Files
from mamushi.stages._settings import Collected, Config


def settings(config: Config) -> Collected:
    return Collected(grid=grid.comparison(config), code=digest(__name__))


def run(files: Files, settings: Collected, job: Job) -> None:
    """Write ``subgroups`` as Parquet and as CSV.

    Raises ``UserError`` that names the first missing or damaged input; nothing is written then.
    """
    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import publish
    from mamushi.evaluation.subgroups import subgroups_table

    table = subgroups_table(settings.grid, files.root)
    publish(files.out_folder, [(schemas.SUBGROUPS, table)], job.origin)
