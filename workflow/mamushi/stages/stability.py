"""Say how often each forget text is in a selector's list, by its scores and their refits.

It is apart from the lists: a change of how often they are refitted changes no list, and retrains
nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mamushi.configuration import grid
from mamushi.running.identity import digest
from mamushi.running.stage import Job, reads, writes
from mamushi.stages._settings import Config, Settings


class Stability(Settings):
    """Settings of the stage ``stability``."""

    budgets: list[float]


def settings(config: Config) -> Stability:
    return Stability(budgets=grid.budgets(config), code=digest(__name__))


@dataclass(frozen=True, kw_only=True)
class Files:
    scores: Path = reads("the scores table")
    refits: Path = reads("their refits")
    out: Path = writes("the stability table to write")


def run(files: Files, settings: Stability, job: Job) -> None:
    """Write ``stability``. Raises ``UserError`` for refits of other examples."""
    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import read_table, write_table
    from mamushi.evidence.stability import rankings, stability
    from mamushi.selection.refits import of_table

    scores = read_table(files.scores, schemas.SCORES)
    again = of_table(read_table(files.refits, schemas.REFITS))
    columns, told = stability(*rankings(scores, again), settings.budgets)
    write_table(files.out, schemas.STABILITY, columns, metadata={"provenance": job.origin, **told})
