"""Join what the runs found before any retraining in tables, and add the advice that follows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mamushi.configuration import grid
from mamushi.running.identity import digest
from mamushi.running.stage import Job, root, writes
from mamushi.stages._settings import Config, Settings


class Evidence(Settings):
    """Settings of the stage ``evidence``; ``selector`` is the one whose scores estimate the
    log-density ratio, ``sad`` whether there is a table of what retraining measured."""

    cells: list[dict[str, Any]]
    runtime_cells: list[dict[str, Any]]
    selector: str
    sad: bool
    targets: list[dict[str, Any]]


def settings(config: Config) -> Evidence:
    return Evidence(
        cells=list(grid.cells(config["grid"])),
        runtime_cells=grid.shown(config),
        selector=config["removal"]["ratio"],
        sad=config["evidence"]["measured"],
        targets=config["evidence"]["targets"],
        code=digest(__name__),
    )


@dataclass(frozen=True, kw_only=True)
class Files:
    root: Path = root()
    out_folder: Path = writes("where to write the tables")


def run(files: Files, settings: Evidence, job: Job) -> None:
    """Write ``frontier``, ``calibration``, ``diagnostics``, ``confounds``, ``geometry``,
    ``runtime``, ``advice`` and ``paper``: Parquet and CSV.

    Raises ``UserError`` that names the first missing or damaged input; nothing is written then.
    """
    import pyarrow as pa

    from mamushi.artifacts import paths, schemas
    from mamushi.artifacts.provenance import provenance
    from mamushi.artifacts.tables import publish, read_table
    from mamushi.evidence.advice import advice, read_frontier
    from mamushi.evidence.tables import joined, paper_rows

    sources = (
        (schemas.FRONTIER, paths.FRONTIER, settings.cells),
        (schemas.CALIBRATION, paths.CALIBRATION, settings.cells),
        (schemas.DIAGNOSTICS, paths.DIAGNOSTICS, settings.cells),
        (schemas.CONFOUNDS, paths.CONFOUNDS, settings.cells),
        (schemas.GEOMETRY, paths.GEOMETRY, settings.cells),
        (schemas.RUNTIME, paths.RUNTIME, settings.runtime_cells),
    )
    tables = {
        kind.name: (kind, joined(kind, pattern, cells, files.root))
        for kind, pattern, cells in sources
    }
    read = {
        f"{kind.name}/{cell['dataset']}/{cell['model']}/seed{cell['seed']}": paths.under(
            files.root, pattern, **cell
        )
        for kind, pattern, cells in sources
        for cell in cells
    }
    curves = [
        row
        for cell in settings.cells
        for row in read_frontier(paths.under(files.root, paths.FRONTIER, **cell))
    ]
    sad = None
    if settings.sad:
        read["sad"] = paths.under(files.root, paths.TABLE, table="sad")
        sad = read_table(read["sad"], schemas.SAD).to_pylist()
    advised = advice(curves, sad, [(one["target"], one["value"]) for one in settings.targets])
    diagnostics, geometry = (tables[name][1].to_pylist() for name in ("diagnostics", "geometry"))
    paper = paper_rows(diagnostics, geometry, settings.selector)
    for kind, rows in ((schemas.ADVICE, advised), (schemas.PAPER, paper)):
        tables[kind.name] = (kind, pa.Table.from_pylist(rows, schema=kind.schema))
    publish(files.out_folder, [*tables.values()], provenance(job.origin["settings"], **read))
