"""Collect how much of SAD at budget 0 is the number of steps alone."""

from __future__ import annotations

from mamushi.configuration import grid
from mamushi.running.identity import digest
from mamushi.running.stage import Job
from mamushi.stages._collecting import Files
from mamushi.stages._settings import Collected, Config


def settings(config: Config) -> Collected:
    """Return the models whose steps follow from their data."""
    axes = grid.comparison(config)
    models = [name for name in axes["models"] if grid.stepped(config, name)]
    axes = {"datasets": axes["datasets"], "models": models, "seeds": axes["seeds"]}
    return Collected(grid=axes, code=digest(__name__))


def run(files: Files, settings: Collected, job: Job) -> None:
    """Write ``steps`` as Parquet and as CSV.

    Raises ``UserError`` that names the first missing or damaged input; nothing is written then.
    """
    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import publish
    from mamushi.evaluation.curves import steps_table

    table = steps_table(settings.grid, files.root)
    publish(files.out_folder, [(schemas.STEPS, table)], job.origin)
