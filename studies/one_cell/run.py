"""One cell of the paper's Figures 2 and 3: its SAD curves, and what the paper says of them.

    python -m studies.one_cell.run newsgroups gemma-2-2b

Reads the tables of a finished run, `results/tables`. SAD is in perplexity, a mean over seeds.
"""

from pathlib import Path
from typing import Any

import numpy as np

from mamushi.errors import UserError
from mamushi.io import schemas
from mamushi.io.columns import Table
from mamushi.io.tables import read_table
from mamushi_extras.effects.schemas import SAD_DIFFERENCES
from studies.lib.report import Report, arguments

OURS = "mamushi"
EVERYWHERE = "the lowest SAD across all budgets"
LATER = "a minor deficit at first, the lowest SAD from intermediate budgets on"
SAID = {
    ("jigsaw", "llama-3.1-8b"): EVERYWHERE,
    ("jigsaw", "qwen-2.5-7b"): LATER,
    ("jigsaw", "gemma-2-2b"): EVERYWHERE,
    ("newsgroups", "llama-3.1-8b"): EVERYWHERE,
    ("newsgroups", "qwen-2.5-7b"): EVERYWHERE,
    ("newsgroups", "gemma-2-2b"): EVERYWHERE,
}
"""What the paper says of Mamushi in each panel (Section "Experiments", Results)."""
INTERMEDIATE = 0.5
"""The budget from which on "intermediate" is taken to mean."""

Rows = list[dict[str, Any]]


def of_cell(tables: Path, kind: Table, dataset: str, model: str) -> Rows:
    """Return the rows of a cell in a table; raises ``UserError`` when it has none."""
    path = tables / f"{kind.name}.parquet"
    rows = read_table(path, kind).to_pylist()
    of = [row for row in rows if (row["dataset"], row["model"]) == (dataset, model)]
    if not of:
        raise UserError(
            f"no rows of {dataset} and {model}",
            where=path,
            do=f"run `make one-cell DATASET={dataset} MODEL={model}`",
        )
    return of


def sad_curves(summary: Rows) -> dict[str, dict[float, float]]:
    """Return mean SAD by selector and budget, without the shared ends 0 and 1."""
    by_selector: dict[str, dict[float, float]] = {}
    for row in sorted(summary, key=lambda row: float(row["beta"])):
        if 0 < row["beta"] < 1:
            by_selector.setdefault(row["selector"], {})[row["beta"]] = row["sad_mean"]
    return by_selector


def lowest_at(sad: dict[str, dict[float, float]]) -> list[float]:
    """Return the budgets at which no other selector has a lower mean SAD than ours."""
    rivals = [curve for name, curve in sad.items() if name != OURS]
    return [at for at, value in sad[OURS].items() if all(value <= curve[at] for curve in rivals)]


def surely(differences: Rows, reference: str, sign: int) -> int:
    """Return at how many budgets ours is surely below (``sign`` -1) or above (1) the reference: the
    95% interval of the paired difference, each by itself, lies on that side of 0."""
    end = "difference_high" if sign < 0 else "difference_low"
    ends = [
        row[end]
        for row in differences
        if (row["selector"], row["quantity"], row["reference"]) == (OURS, "sad", reference)
    ]
    return sum(value is not None and np.sign(value) == sign for value in ends)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("dataset")
    parser.add_argument("model")
    parser.add_argument("--tables", type=Path, default=Path("results/tables"))
    args = parser.parse_args()
    cell = (args.dataset, args.model)
    sad = sad_curves(of_cell(args.tables, schemas.SAD_SUMMARY, *cell))
    differences = of_cell(args.tables, SAD_DIFFERENCES, *cell)
    report = Report(f"one_cell-{args.dataset}-{args.model}")
    for name, curve in sad.items():
        for at, value in curve.items():
            report.value(f"sad_{name}_{at:.2f}", value)
    lowest = lowest_at(sad)
    report.value("budgets", len(sad[OURS]))
    report.value("lowest_at", len(lowest))
    report.value("lowest_from_intermediate_at", sum(at >= INTERMEDIATE for at in lowest))
    for reference in ("random", "best"):
        report.value(f"surely_below_{reference}_at", surely(differences, reference, -1))
        report.value(f"surely_above_{reference}_at", surely(differences, reference, 1))
    report.write(args.results)
    words = SAID.get(cell, "nothing, since it has no such cell")
    print(
        f"The paper says of {OURS} here: {words}.\n"
        f"Measured: the lowest mean SAD at {len(lowest)} of {len(sad[OURS])} budgets; surely below"
        f" random at {surely(differences, 'random', -1)}, surely below the best of the others at"
        f" {surely(differences, 'best', -1)}."
    )


if __name__ == "__main__":
    main()
