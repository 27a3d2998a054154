"""Collect what is left of forget texts in the models of all cells, beside the same of gold."""

from __future__ import annotations

from mamushi.running.identity import digest
from mamushi.running.stage import Job
from mamushi.stages._collecting import Files
from mamushi.stages._settings import Collected, Config, left_axes, starts_of


class Left(Collected):
    """Settings of the stage ``left``; ``ready`` are the models that were trained before."""

    starts: dict[str, str]
    ready: list[str]


def settings(config: Config) -> Left:
    names = config["left"]["models"]
    return Left(
        grid=left_axes(config),
        starts=starts_of(config, config["left"]),
        ready=[name for name in names if config["models"][name].get("contaminated")],
        code=digest(__name__),
    )


def run(files: Files, settings: Left, job: Job) -> None:
    """Write ``membership``, ``memorization`` and ``left``, each as Parquet and as CSV.

    Raises ``UserError`` that names the first missing or damaged input; nothing is written then.
    """
    from mamushi.artifacts.tables import publish
    from mamushi.evaluation.audit_texts import audit_texts

    found = audit_texts(settings.grid, settings.starts, settings.ready, files.root)
    publish(files.out_folder, found, job.origin)
