"""Set each ranking beside that by the exact log-density ratio, where it is known."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mamushi.configuration import grid
from mamushi.running.identity import digest
from mamushi.running.stage import Job, reads, root, writes
from mamushi.stages._settings import Collected, Config, by_chance


class Truth(Collected):
    """Settings of the stage ``truth``; ``by_chance`` as in ``Frontier``."""

    by_chance: dict[str, bool]


def settings(config: Config) -> Truth:
    axes = grid.comparison(config)
    chance = by_chance(config, axes["selectors"])
    return Truth(grid=axes, by_chance=chance, code=digest(__name__))


@dataclass(frozen=True, kw_only=True)
class Files:
    sad: Path = reads("table `sad`")
    root: Path = root()
    out_folder: Path = writes("where to write the table")


def run(files: Files, settings: Truth, job: Job) -> None:
    """Write ``truth`` as Parquet and as CSV.

    Raises ``UserError`` that names the first missing or damaged input; nothing is written then.
    """
    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import publish, read_table
    from mamushi.evidence.truth import truth_table

    sad = read_table(files.sad, schemas.SAD)
    table = truth_table(settings.grid, settings.by_chance, sad, files.root)
    publish(files.out_folder, [(schemas.TRUTH, table)], job.origin)
