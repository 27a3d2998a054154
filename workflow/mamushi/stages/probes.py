"""Collect what all models said and how they relearned in two result tables."""

from __future__ import annotations

from mamushi.running.identity import digest
from mamushi.running.stage import Job
from mamushi.stages._collecting import Files
from mamushi.stages._settings import Collected, Config, probe_axes, starts_of


class Probes(Collected):
    """Settings of the stage ``probes``."""

    starts: dict[str, str]


def settings(config: Config) -> Probes:
    return Probes(
        grid=probe_axes(config), starts=starts_of(config, config["probe"]), code=digest(__name__)
    )


def run(files: Files, settings: Probes, job: Job) -> None:
    """Write ``generations`` and ``relearning``, each as Parquet and as CSV.

    Raises ``UserError`` that names the first missing or damaged input; nothing is written then.
    """
    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import publish
    from mamushi.evaluation.probes import all_generations, relearning_table

    grid = settings.grid
    tables = [
        (schemas.GENERATIONS, all_generations(grid, files.root)),
        (schemas.RELEARNING, relearning_table(grid, settings.starts, files.root)),
    ]
    publish(files.out_folder, tables, job.origin)
