"""The tables ``unlearning`` and ``half_gap`` with what they say of the deep gap, that of the NLL
without word frequencies. It is a small part of the whole, so that which texts are held out matters
as seeds do: errors are over both.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mamushi.evaluation import half_gap
from mamushi.evaluation.half_gap import curve_arms, first_crossing, interpolate
from mamushi.evaluation.intervals import Floats, finite_or_none
from mamushi.io.columns import Table
from mamushi.io.schemas import HALF_GAP, UNLEARNING
from mamushi.io.tables import FORGET
from mamushi_extras.effects.cohort import cohorts
from mamushi_extras.effects.contrasts import NO_GAP, contrast

DEEP_STEPS = 100  # Budgets at which the interval of a crossing is worked out.
Texts = tuple[Floats, NDArray[np.int64] | None]
"""Predicted tokens (m,) of texts, and groups (m,) of those that are not independent, if any."""


def tables(
    root: Path, grid: Mapping[str, Any], starts: Mapping[str, str], target: float, **settings: Any
) -> dict[Table, Any]:
    """Return the tables as the core makes them, with the columns ``deep`` of ``unlearning`` and
    ``deep_*`` of ``half_gap``."""
    made = half_gap.tables(root, grid=grid, starts=starts, target=target, **settings)
    points, budgets = (made[kind].to_pylist() for kind in (UNLEARNING, HALF_GAP))
    for cohort in cohorts(grid, root):
        start, sampled = starts[cohort.model], cohort.rows(FORGET, deep=True)
        texts = cohort.at(sampled)
        ends = [cohort.nll(arm, deep=True)[:, sampled] for arm in (start, "gold")]
        for row in budgets:
            pair = cohort.cell | {name: row[name] for name in ("unlearner", "selector")}
            if not pair.items() <= row.items():
                continue
            # By seeds, and their budgets.
            curve = [point for point in points if pair.items() <= point.items()]
            beta = [point["beta"] for point in curve if point["seed"] == cohort.seeds[0]]
            models = curve_arms(row["unlearner"], row["selector"], beta[1:-1], start).values()
            nll = np.array([cohort.nll(arm, deep=True)[:, sampled] for arm in models])
            shares, columns = deep_curve(np.array(beta), nll, ends, texts, target)
            row |= columns
            for point, share in zip(curve, shares.ravel(), strict=True):
                point["deep"] = finite_or_none(share)
    return made | {UNLEARNING: points, HALF_GAP: budgets}


def deep_curve(
    beta: Floats, nll: Floats, ends: Sequence[Floats], texts: Texts, target: float
) -> tuple[Floats, dict[str, Any]]:
    """Return the change of models (budgets, S, m) at ascending ``beta`` from the start as a share
    of the mean deep gap between the ``ends``, start and gold (S, m), as (S, budgets), whose mean
    over seeds is what is recovered of it; and the columns ``deep_*`` of ``half_gap``: where that is
    ``target``, and between which budgets no test tells it from that. One seed does not know how far
    another is, and has no such ends. NaN, and the reason, where no gap is clearly above 0."""
    start, gold = ends
    whole_gap = contrast(gold, start, *texts, of_texts=True)
    if not whole_gap.low > 0:
        none = np.full((len(start), len(beta)), np.nan)
        return none, {"deep_withheld": whole_gap.reason or NO_GAP}
    shares = np.asarray((nll - start).sum(axis=-1).T / (gold - start).sum(axis=-1).mean())
    budget, low, high = first_crossing(beta, shares.mean(axis=0), target), None, None
    if len(start) > 1:
        steps = np.union1d(beta, np.linspace(beta[0], beta[-1], DEEP_STEPS + 1))
        aim = start + target * (gold - start)
        between = interpolate(beta, nll.reshape(len(beta), -1).T, steps).T
        effects = [contrast(at.reshape(aim.shape), aim, *texts) for at in between]
        low = first_crossing(steps, [effect.high for effect in effects], 0.0)
        high = first_crossing(steps, [effect.low for effect in effects], 0.0)
    columns = {"deep_budget": budget, "deep_budget_low": low, "deep_budget_high": high}
    return shares, {**columns, "deep_censored": budget is None}
