"""Collect what is left of forget texts in the models of all cells, beside the same of gold."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mamushi.configuration.settings import Left
from mamushi.running.stage import Job, root, writes


@dataclass(frozen=True, kw_only=True)
class Files:
    root: Path = root()
    out_folder: Path = writes("where to write the tables")


def run(files: Files, chosen: Left, job: Job) -> None:
    """Write ``membership``, ``memorization`` and ``left``, each as Parquet and as CSV.

    Raises ``UserError`` that names the first missing or damaged input; nothing is written then.
    """
    from mamushi.artifacts.tables import publish
    from mamushi.evaluation.audit_texts import audit_texts

    found = audit_texts(chosen.grid, chosen.starts, chosen.ready, files.root)
    publish(files.out_folder, found, job.origin)
