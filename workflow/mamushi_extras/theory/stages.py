"""What the paper proves, beside what was measured where the truth is known."""

from pathlib import Path
from typing import Any

from mamushi.config.grid import cells
from mamushi.config.kinds import Config, Settings, setting
from mamushi.io import paths
from mamushi.registry import plugin
from mamushi.running.stage import Job, Output


def cells_with_truth(config: Config) -> list[dict[str, Any]]:
    """Return the cells of the grid whose exact log-density ratio is known."""
    kinds = {name: dataset["kind"] for name, dataset in config["datasets"].items()}
    known = {name for name, kind in kinds.items() if plugin("dataset", kind).knows_truth}
    return [cell for cell in cells(config["grid"]) if cell["dataset"] in known]


def truths(config: Config) -> list[str]:
    """Return the exact ratio, and its estimate, of all runs that have one."""
    patterns = (paths.EXAMPLES, paths.CALIBRATED)
    return [pattern.format(**run) for pattern in patterns for run in cells_with_truth(config)]


class TheorySettings(Settings):
    """Cells with a truth, their budgets, and the selector whose scores estimate the ratio."""

    cells: list[dict[str, Any]] = setting(cells_with_truth)
    budgets: list[float] = setting("grid.budgets")
    selector: str = setting("removal.ratio")


def theory(
    *, root: Path = paths.RESULTS, out_folder: Output, settings: TheorySettings, job: Job
) -> None:
    """Measure what the paper proves beside its bounds, on the texts of each cell whose exact ratio
    is known."""
    import numpy as np

    from mamushi.evidence.frontier import read_truth
    from mamushi.io import schemas
    from mamushi.io.tables import FORGET, publish, read_table
    from mamushi_extras.theory.schemas import THEORY
    from mamushi_extras.theory.statements import Population, theory_rows

    rows: list[dict[str, Any]] = []
    for cell in settings.cells:
        calibrated = paths.under(root, paths.CALIBRATED, **cell)
        estimate = read_table(calibrated, schemas.CALIBRATED, ["id", "domain", "log_ratio"])
        ratio = read_truth(paths.under(root, paths.EXAMPLES, **cell), estimate["id"])
        if ratio is None:
            continue
        forget = np.array(estimate["domain"].to_pylist()) == FORGET
        log_ratio = np.asarray(estimate["log_ratio"].to_numpy(), dtype=np.float64)
        texts = Population.of(ratio[forget], log_ratio[forget], float(forget.mean()))
        measured = theory_rows(texts, settings.budgets)
        rows += [{**cell, "selector": settings.selector, **row} for row in measured]
    publish(out_folder, [(THEORY, rows)], job.origin)
