"""Collect what is left of forget texts in the models of all cells, beside the same of gold."""

from __future__ import annotations

from mamushi.running.stage import Job
from mamushi.stages._collecting import Files
from mamushi.stages._settings import Left


def run(files: Files, chosen: Left, job: Job) -> None:
    """Write ``membership``, ``memorization`` and ``left``, each as Parquet and as CSV.

    Raises ``UserError`` that names the first missing or damaged input; nothing is written then.
    """
    from mamushi.artifacts.tables import publish
    from mamushi.evaluation.audit_texts import audit_texts

    found = audit_texts(chosen.grid, chosen.starts, chosen.ready, files.root)
    publish(files.out_folder, found, job.origin)
