"""Advise how many examples to remove: budgets that the frontier predicts.

Two targets. ``removal``, a share: the smallest budget whose removal has gone that part of the way
from nothing removed to all removed. ``preservation``, in nats per text: the smallest budget with
KL(p2 || p_-S) at most that (paper, Eq. "distributional unlearning": epsilon).

The frontier is that of a learner whose model is the mixture that it is trained on. A language model
learns from one forget text about others. What retraining needs for a share of the removal is
foreseen by the table ``predicted``.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from mamushi.errors import UserError
from mamushi.evaluation.half_gap import first_crossing
from mamushi.evaluation.sad import Curve, curves_of
from mamushi.evidence.frontier import ENDS
from mamushi.io import paths, schemas
from mamushi.io.tables import read_metadata, read_table

AdviceRow = Mapping[str, Any]

TARGETS = {"removal": ("gain", 1), "preservation": ("preservation", -1)}
"""Target -> the column that decides it, and 1 where that has to rise to it, -1 where to fall."""
OF_TOKENS = "it ranks tokens, and no prediction of retraining gets there"
WIDEST = 0.6  # The width of a budget's interval from which it is no advice.
HALF_WIDTH = 0.2  # On each of seven domains 95% of the budgets of retraining were within 0.19.
LIMIT = (
    "The share is that of a learner that becomes the mixture it is trained on, and the span is its "
    "95% interval. A model that is tuned on few texts may need another one; two or three "
    "retrainings there tell."
)
PREDICTED = (
    "Predicted by what goes of the words; on each of seven domains at least 95% of retrained "
    "models needed a budget in the span."
)
ROUNDING = 1e-9


def read_frontier(path: str | Path) -> list[dict[str, Any]]:
    """Read the rows of one run's ``frontier``. Each also has the columns of its ``gain`` with
    bands, and ``withheld``, the reason why no budget can be read off."""
    rows, stored = read_table(path, schemas.FRONTIER).to_pylist(), read_metadata(path)
    withheld, pairs = stored["verdict"]["withheld"], zip(rows, stored["gains"], strict=True)
    return [{**row, **gain, "withheld": withheld} for row, gain in pairs]


def read_results(
    root: Path, dataset: str = "*", model: str = "*"
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Read the rows of the frontiers of all seeds in a results folder, of all datasets and models
    unless one is named, and of the tables ``predicted`` beside them. Raises ``UserError`` where
    there is no frontier, and for a damaged file."""
    pattern = paths.under("", paths.FRONTIER, dataset=dataset, model=model, seed="*")
    if not (files := sorted(root.glob(str(pattern)))):
        do = "make it first: mamushi run evidence"
        raise UserError(f"no {pattern.name} of this run", where=root, do=do)
    beside = [path.with_name(Path(paths.PREDICTED).name) for path in files]
    tables = [read_table(path, None) for path in beside if path.is_file()]
    foreseen = [row for table in tables for row in table.to_pylist()]
    return [row for path in files for row in read_frontier(path)], foreseen


def choose_list(
    root: Path, cell: Mapping[str, Any], selector: str, lists: Sequence[AdviceRow]
) -> tuple[AdviceRow, AdviceRow | None]:
    """Return which of a selector's lists to take for half of what the removal of all forget texts
    does, the first that is as large or the last, with the row of ``advice``; the first list and
    None where nothing was predicted."""
    try:
        frontier, foreseen = read_results(root, cell["dataset"], cell["model"])
    except UserError:
        return lists[0], None
    rows = advice(frontier, [("removal", 0.5)], foreseen)
    row = next((row for row in rows if row["selector"] == selector), None)
    least = (first_budget(row) or 0.0) - ROUNDING
    return next((one for one in lists if one["beta"] >= least), lists[-1]), row


def first_budget(row: AdviceRow | None) -> float | None:
    """Return the budget to try first: that of retraining or, where it is unknown, the theory's."""
    if row is None:
        return None
    return row["budget"] if row["retraining"] is None else row["retraining"]


def units_at(budget: float, total: int) -> int:
    """Return how many texts or tokens a budget is. Rounded up: with fewer the target would be
    missed."""
    return min(math.ceil(budget * total - ROUNDING), total - 1)


def advice(
    frontier: Sequence[AdviceRow],
    targets: Iterable[tuple[str, float]],
    foreseen: Sequence[AdviceRow] = (),
) -> list[dict[str, Any]]:
    """Return the rows of the table ``advice``, one per dataset, model, selector and target: the
    budget by the frontier's rows, and by the mean curve of the rows ``foreseen`` of ``predicted``
    that of retraining. A row also has in words the ``span`` and the ``limit`` of its first budget,
    None without one. Raises ``UserError`` for a value that a target cannot have."""
    frontiers, expected, rows = curves_of(frontier), curves_of(foreseen), []
    for key, (target, value) in product(dict.fromkeys([*frontiers, *expected]), list(targets)):
        if not (0 <= value < math.inf if target == "preservation" else 0 < value <= 1):
            do = "a removal is a share above 0 and at most 1, preservation is at least 0 nats"
            raise UserError(f"{target}: {value}", do=do)
        row: dict[str, Any] = dict(zip(("dataset", "model", "selector"), key, strict=True))
        row |= {"target": target, "value": value, "reason": OF_TOKENS}
        row |= dict.fromkeys(f"{of}{end}" for of in ("budget", "retraining") for end in ENDS)
        if key in frontiers:
            row |= predicted_budget(frontiers[key], target, value)
        if target == "removal" and key in expected:
            points = [[row["recovered"] for row in curve] for curve in expected[key]]
            pairs = zip(expected[key][0], np.mean(points, axis=0), strict=True)
            mean: Curve = [{**row, "recovered": height} for row, height in pairs]
            if not np.isnan(need := first_reached(mean, "recovered", value)):
                row |= {"retraining": need, "retraining_low": max(need - HALF_WIDTH, 0.0)}
                row["retraining_high"] = min(need + HALF_WIDTH, 1.0)
        is_foreseen, span = row["retraining"] is not None, None
        if first_budget(row):
            of = "retraining" if is_foreseen else "budget"
            span = f"{row[f'{of}_low']:.0%} to {row[f'{of}_high']:.0%}"
        rows.append({**row, "span": span, "limit": span and (PREDICTED if is_foreseen else LIMIT)})
    return rows


def predicted_budget(seeds: Sequence[Curve], target: str, value: float) -> dict[str, Any]:
    """Return ``budget``, the mean over seeds of where their curves get there, ``budget_low`` and
    ``budget_high``, the least and the greatest at which an end of a seed's 95% band does, rounded
    outwards to hundredths; all None where nothing can be stood by, and a ``reason`` why."""
    column, sign = TARGETS[target]
    easy, hard = ENDS[1:][::-sign]
    reached = {
        end: np.array([first_reached(seed, column + end, value, sign) for seed in seeds])
        for end in ENDS
    }
    first = math.floor(100 * np.nan_to_num(reached[easy], nan=0.0).min() + ROUNDING) / 100
    last = math.ceil(100 * np.nan_to_num(reached[hard], nan=1.0).max() - ROUNDING) / 100
    reason = next((curve[0]["withheld"] for curve in seeds if curve[0]["withheld"]), None)
    if not reason and any(row[column + hard] is None for curve in seeds for row in curve):
        reason = "the gain of removing all is not distinguishable from 0"
    elif not reason and np.isnan(reached[""]).any():
        reason = "no budget below 1 gets there"
    elif not reason and last - first > WIDEST:
        reason = f"all from {first:.2f} to {last:.2f} is as likely"
    ends = (None,) * 3 if reason else (float(reached[""].mean()), first, last)
    return {**dict(zip((f"budget{end}" for end in ENDS), ends, strict=True)), "reason": reason}


def first_reached(curve: Curve, column: str, value: float, sign: int = 1) -> float:
    """Return the least budget at which a curve rises to a value, or falls where ``sign`` is -1; NaN
    where none below 1 does, or where it is not defined."""
    budgets, heights = (np.array([row[name] for row in curve], float) for name in ("beta", column))
    is_known = not np.isnan(heights).any()
    crossing = first_crossing(budgets, sign * heights, sign * value) if is_known else None
    return np.nan if crossing is None or crossing > 1 - ROUNDING else crossing
