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
    theory: dict[str, int]


def settings(config: Config) -> Evidence:
    return Evidence(
        cells=list(grid.cells(config["grid"])),
        runtime_cells=grid.shown(config),
        selector=config["removal"]["ratio"],
        sad=config["evidence"]["measured"],
        targets=config["evidence"]["targets"],
        theory={"worlds": config["evidence"]["worlds"], "seed": 0},
        code=digest(__name__),
    )


@dataclass(frozen=True, kw_only=True)
class Files:
    root: Path = root()
    out_folder: Path = writes("where to write the tables")


def run(files: Files, settings: Evidence, job: Job) -> None:
    """Write ``frontier``, ``calibration``, ``diagnostics``, ``confounds``, ``geometry``,
    ``runtime``, ``advice``, ``paper`` and ``theory``: Parquet
    and CSV.

    Raises ``UserError`` that names the first missing or damaged input; nothing is written then.
    """
    import pyarrow as pa

    from mamushi.artifacts import paths, schemas
    from mamushi.artifacts.provenance import provenance
    from mamushi.artifacts.tables import publish, read_table
    from mamushi.evidence.advice import advice, ordering, read_frontier
    from mamushi.evidence.paper import paper_rows
    from mamushi.evidence.tables import frontier_errors, joined
    from mamushi.evidence.worlds import looseness

    sources = (
        (schemas.FRONTIER, paths.FRONTIER, settings.cells),
        (schemas.CALIBRATION, paths.CALIBRATION, settings.cells),
        (schemas.DIAGNOSTICS, paths.DIAGNOSTICS, settings.cells),
        (schemas.CONFOUNDS, paths.CONFOUNDS, settings.cells),
        (schemas.GEOMETRY, paths.GEOMETRY, settings.cells),
        (schemas.RUNTIME, paths.RUNTIME, settings.runtime_cells),
    )
    frontier, calibration, diagnostics, confounds, geometry, runtime = (
        joined(*each, files.root) for each in sources
    )
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
    targets = [(one["target"], one["value"]) for one in settings.targets]
    advised = pa.Table.from_pylist(advice(curves, sad, targets), schema=schemas.ADVICE.schema)
    paper = paper_rows(diagnostics.to_pylist(), geometry.to_pylist(), settings.selector)
    worlds = looseness(**settings.theory)
    errors = frontier_errors(frontier.to_pylist())
    order = {"/".join(pair): rho for pair, rho in ordering(advised.to_pylist()).items()}
    made = provenance(job.origin["settings"], **read)
    publish(
        files.out_folder, [(schemas.FRONTIER, frontier)], {**made, "mean_absolute_error": errors}
    )
    publish(files.out_folder, [(schemas.ADVICE, advised)], {**made, "spearman_of_areas": order})
    rest = [
        (schemas.CALIBRATION, calibration),
        (schemas.DIAGNOSTICS, diagnostics),
        (schemas.CONFOUNDS, confounds),
        (schemas.GEOMETRY, geometry),
        (schemas.RUNTIME, runtime),
        (schemas.PAPER, pa.Table.from_pylist(paper, schema=schemas.PAPER.schema)),
        (schemas.THEORY, pa.Table.from_pylist(worlds, schema=schemas.THEORY.schema)),
    ]
    publish(files.out_folder, rest, made)
    for key, error in errors.items():
        print(
            f"{key}: the estimated frontier is off by {error['removal']:.4f} (removal) and "
            f"{error['preservation']:.4f} (preservation) nats on average"
        )
    for pair, rho in order.items():
        if rho is not None:
            print(f"{pair}: predicted and measured areas agree with Spearman {rho:.2f}")
