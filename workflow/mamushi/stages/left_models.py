"""Collect what is left in models: distances to gold, what comes back, utility."""

from __future__ import annotations

from typing import Any

from mamushi.configuration import grid
from mamushi.running.identity import digest
from mamushi.running.stage import Job
from mamushi.stages._collecting import Files
from mamushi.stages._settings import Collected, Config, starts_of


class LeftModels(Collected):
    """Settings of the stage ``left_models``; ``deleted`` has the axes of the models that are
    probed, ``starts`` the endpoints that unlearning starts from, by model."""

    deleted: dict[str, Any]
    starts: dict[str, str]
    tasks: list[str]


def settings(config: Config) -> LeftModels:
    axes = grid.probed(config)
    return LeftModels(
        grid=grid.comparison(config),
        deleted=axes,
        starts=starts_of(config, axes),
        tasks=config["utility"]["tasks"],
        code=digest(__name__),
    )


def run(files: Files, settings: LeftModels, job: Job) -> None:
    """Write each table as Parquet and as CSV.

    Raises ``UserError`` that names the first missing or damaged input; nothing is written then.
    """
    from mamushi.artifacts.tables import publish
    from mamushi.evaluation.audit_models import Audit

    audit = Audit(settings.grid, settings.deleted, settings.starts, files.root)
    publish(files.out_folder, audit.tables(tasks=bool(settings.tasks)), job.origin)
