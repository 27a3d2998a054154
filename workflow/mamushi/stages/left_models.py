"""Collect what is left in models: distances to gold, forensic tests, what comes back, utility."""

from __future__ import annotations

from mamushi.running.stage import Job
from mamushi.stages._collecting import Files
from mamushi.stages._settings import LeftModels


def run(files: Files, chosen: LeftModels, job: Job) -> None:
    """Write each table as Parquet and as CSV.

    Raises ``UserError`` that names the first missing or damaged input; nothing is written then.
    """
    from mamushi.artifacts.tables import publish
    from mamushi.evaluation.audit_models import Audit

    audit = Audit(chosen.grid, chosen.deleted, chosen.starts, files.root)
    publish(files.out_folder, audit.tables(tasks=bool(chosen.tasks)), job.origin)
