"""Collect what is left in models: distances to gold, forensic tests, what comes back, utility."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mamushi.configuration.settings import LeftModels
from mamushi.running.stage import Job, root, writes


@dataclass(frozen=True, kw_only=True)
class Files:
    root: Path = root()
    out_folder: Path = writes("where to write the tables")


def run(files: Files, chosen: LeftModels, job: Job) -> None:
    """Write each table as Parquet and as CSV.

    Raises ``UserError`` that names the first missing or damaged input; nothing is written then.
    """
    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import publish
    from mamushi.evaluation import left_models as left

    axes = left.Axes(chosen.grid, chosen.deleted, chosen.starts, files.root)
    kinds = [
        (schemas.KLOM, left.klom),
        (schemas.TELL_MODELS, left.tell_models),
        (schemas.NAME_TEXTS, left.name_texts),
        (schemas.RELAPSE, left.relapse),
        (schemas.UTILITY, left.utility),
        *([(schemas.UTILITY_TASKS, left.utility_tasks)] if chosen.tasks else []),
    ]
    tables = [(kind, left.table(kind, rows, axes)) for kind, rows in kinds]
    publish(files.out_folder, tables, job.origin)
