"""What the paper proves, where the truth is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mamushi.config import grid
from mamushi.io import paths
from mamushi.running.stage import Job, Output, Settings, setting


class TheorySettings(Settings):
    """Cells with a truth, their budgets, and the selector whose scores estimate the ratio."""

    cells: list[dict[str, Any]] = setting(grid.with_truth)
    budgets: list[float] = setting("grid.budgets")
    selector: str = setting("removal.ratio")


def theory(
    *, root: Path = paths.RESULTS, out_folder: Output, settings: TheorySettings, job: Job
) -> None:
    """Measure the paper's statements beside their bounds, on the texts of each cell whose exact
    ratio is known."""
    import numpy as np

    from mamushi.evidence.theory_texts import Population, theory_rows
    from mamushi.evidence.truth import read_truth
    from mamushi.io import schemas
    from mamushi.io.provenance import provenance
    from mamushi.io.tables import FORGET, publish, read_table

    rows: list[dict[str, Any]] = []
    inputs = {}
    for cell in settings.cells:
        examples = paths.under(root, paths.EXAMPLES, dataset=cell["dataset"])
        calibrated = paths.under(root, paths.CALIBRATED, **cell)
        inputs[f"examples/{cell['dataset']}"] = examples
        inputs[f"calibrated/{cell['dataset']}/{cell['model']}/seed{cell['seed']}"] = calibrated
        estimate = read_table(calibrated, schemas.CALIBRATED, ["id", "domain", "log_ratio"])
        ratio = read_truth(examples, estimate["id"])
        if ratio is None:
            continue
        forget = np.array(estimate["domain"].to_pylist()) == FORGET
        log_ratio = np.asarray(estimate["log_ratio"].to_numpy(), dtype=np.float64)
        texts = Population.of(ratio[forget], log_ratio[forget], float(forget.mean()))
        measured = theory_rows(texts, settings.budgets)
        rows += [{**cell, "selector": settings.selector, **row} for row in measured]
    publish(out_folder, [(schemas.THEORY, rows)], provenance(job.origin["settings"], **inputs))
