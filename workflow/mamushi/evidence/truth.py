"""Compare rankings with that by the exact log-density ratio, where it is known: table ``truth``.

Of the exact removal and preservation of a selector's set, in nats (Section 5), the *regret* is what
the set of as many texts by the exact ratio has more of the first and less of the second
(Proposition "optimal selection"), as the mean over the measured budgets.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mamushi.artifacts import paths, schemas
from mamushi.artifacts.tables import FORGET, read_table
from mamushi.configuration.grid import cells
from mamushi.errors import UserError
from mamushi.evaluation.quality import selection_table
from mamushi.evaluation.summary import areas, curves_of
from mamushi.evidence.bootstrap import Truth, exact
from mamushi.evidence.frontier import Array, ranking, ranking_of
from mamushi.selection.removals import budget_of

CELL = ("dataset", "model", "seed", "selector")


def truth_of(examples: pa.Table, scores: pa.Table) -> Truth | None:
    """Return the exact ratios of the texts in a table ``scores``, and of all in ``examples``.

    None for a dataset that does not know them for all that is ranked.
    """
    known = np.asarray(examples["log_density_ratio"].to_numpy(), dtype=np.float64)
    by_id = dict(zip(examples["id"].to_pylist(), known, strict=True))
    ranked = np.array([by_id.get(name, np.nan) for name in scores["id"].to_pylist()])
    if not np.isfinite(ranked).all():
        return None
    finite = np.isfinite(known)
    everywhere = np.array(examples["domain"].to_pylist())[finite] == FORGET
    forget = np.asarray(pc.equal(scores["domain"], FORGET))
    return Truth(known[finite], everywhere, ranked[forget], ranked[~forget])


def regrets(scores: pa.Table, truth: Truth, betas: Array, by_chance: bool) -> tuple[float, float]:
    """Return the mean regrets in removal and preservation, in nats, over budgets ``betas`` (B,)."""
    counts = np.array([budget_of(beta, scores) for beta in betas])
    order = np.argsort(np.argsort(-truth.l1, kind="stable"), kind="stable") + 1.0
    best = exact(ranking(truth.l1, order, truth.l2, False), truth, counts)
    ours = exact(ranking_of(scores, by_chance), truth, counts)
    return float(np.mean(best[0] - ours[0])), float(np.mean(ours[1] - best[1]))


def truth_table(
    grid: Mapping[str, Any], by_chance: Mapping[str, bool], sad: pa.Table, root: str | Path
) -> pa.Table:
    """Return a row per dataset, model, seed and selector of the grid, from its scores and ``sad``.

    Raises ``UserError`` that names the first missing or damaged file, or the scores whose texts
    have no exact ratio.
    """
    found = {
        (*cell[:2], curve[0]["seed"], cell[2]): float(area)
        for cell, curves in curves_of(sad).items()
        for curve, area in zip(curves, areas(curves), strict=True)
    }
    betas = np.array(grid["budgets"], dtype=np.float64)
    examples = {
        dataset: read_table(paths.under(root, paths.EXAMPLES, dataset=dataset), schemas.EXAMPLES)
        for dataset in grid["datasets"]
    }
    quality = {
        tuple(row[key] for key in CELL): row for row in selection_table(grid, root).to_pylist()
    }
    rows = []
    for run in cells(grid):
        for selector in grid["selectors"]:
            path = paths.under(root, paths.SCORES, **run, selector=selector)
            scores = read_table(path, schemas.SCORES)
            truth = truth_of(examples[run["dataset"]], scores)
            if truth is None:
                raise UserError(
                    "texts without an exact log-density ratio",
                    where=path,
                    do="take `oracle` out of grid.selectors",
                )
            removed, preserved = regrets(scores, truth, betas, by_chance[selector])
            cell = (run["dataset"], run["model"], run["seed"], selector)
            rows.append(
                {
                    **run,
                    "selector": selector,
                    **{name: quality[cell][name] for name in ("auc", "spearman_with_truth")},
                    "removal_regret": removed,
                    "preservation_regret": preserved,
                    "area": found[cell],
                }
            )
    return pa.Table.from_pylist(rows, schema=schemas.TRUTH.schema)
