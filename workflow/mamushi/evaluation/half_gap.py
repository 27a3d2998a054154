"""The tables ``unlearning``, ``half_gap`` and ``savings``: budget-perplexity curves, where they
cross, and these budgets in the form of the paper's table.

All curves of a seed have one scale: 0 is the forget perplexity of the model that unlearning starts
from, 1 that of the gold standard, and the target lies between the two, linear between measured
budgets (paper, section "Synergy with Sample-Level Unlearning", after Allouah et al., Table 5).
Columns ``deep*`` are null here: ``mamushi_extras.effects.deep_gap`` fills them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from mamushi.config import arms
from mamushi.config.arms import RETRAINING_SOURCE
from mamushi.config.grid import OF_SWEEP, cells
from mamushi.evaluation.intervals import Floats, fieller, finite_or_none, t_quantile
from mamushi.evaluation.sad import BASELINE, GridLists, read_arm
from mamushi.io import paths, schemas
from mamushi.io.columns import Table
from mamushi.io.files import read_json, write_json

BAND_STEPS = 1000  # Budgets at which the band around a curve is worked out.
HALF_GAPS: Mapping[str, Mapping[str, float]] = {
    "retraining": {"random": 0.62, "coreset": 0.64, "mamushi": 0.24},
    "neggrad_plus": {"random": 0.61, "coreset": 0.26, "mamushi": 0.21},
    "salun": {"random": 0.40, "coreset": 0.35, "mamushi": 0.36},
}
"""The paper's table "Synergy with Sample-Level Unlearning": budgets by unlearner and selector,
as shares, of ``HALF_GAPS_OF``."""
HALF_GAPS_OF = ("newsgroups", "qwen-2.5-7b")
"""The dataset and the model of these, by their names in ``config.yaml``."""

_Row = dict[str, Any]


def tables(
    root: Path,
    grid: GridLists,
    starts: Mapping[str, str],
    sweeps: Iterable[Mapping[str, Any]],
    target: float,
    retain_cap: float,
    fine: float | None,
) -> dict[Table, pa.Table]:
    """Return the three tables. Write down at which finer budgets the next run measures, with what
    they were chosen by."""
    points = unlearning_table(grid, starts, sweeps, root)
    chosen = {"budgets": grid["budgets"], "seeds": grid["seeds"], "fine": fine, "target": target}
    added = finer_sweeps(points, grid["budgets"], target, fine)
    write_json(paths.under(root, paths.SWEEPS), {**chosen, "added": added})
    budgets = half_gap_table(points, target, retain_cap)
    return {
        schemas.UNLEARNING: points,
        schemas.HALF_GAP: budgets,
        schemas.SAVINGS: savings_table(budgets),
    }


def recovery(ppl: npt.ArrayLike, start: npt.ArrayLike, gold: npt.ArrayLike) -> Floats:
    """Return the share of the way from ``start`` to ``gold`` that ``ppl`` has gone; arguments
    broadcast. NaN where gold is not above the start: there is nothing to recover."""
    gap = np.subtract(gold, start, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(gap > 0, np.subtract(ppl, start) / gap, np.nan)


def first_crossing(beta: npt.ArrayLike, height: npt.ArrayLike, target: float) -> float | None:
    """Return the smallest budget at which a piecewise linear curve is at ``target`` or above; None
    if it never is. ``beta`` and ``height`` (budgets,)."""
    x, y = np.asarray(beta, dtype=np.float64), np.asarray(height, dtype=np.float64)
    reached = np.flatnonzero(y >= target)
    if not reached.size or not reached[0]:
        return float(x[0]) if reached.size else None
    before, after = reached[0] - 1, reached[0]
    share = (target - y[before]) / (y[after] - y[before])
    # Rounded, the last part of the way may be a hair longer than the step.
    return finite_or_none(np.minimum(x[before] + share * (x[after] - x[before]), x[after]))


def interpolate(beta: Floats, curves: Floats, at: Floats | float) -> Floats:
    """Return the heights of curves (k, budgets) at one budget (k,), or at several (k, m)."""
    return np.array([np.interp(at, beta, curve) for curve in curves])


def finer_budgets(
    beta: npt.ArrayLike, height: npt.ArrayLike, target: float, fine: float | None
) -> list[float]:
    """Return the budgets to measure next: multiples of ``fine``, ascending, strictly between the
    two measured budgets around the first crossing. Empty without one, or for one at the start."""
    crossing, x = first_crossing(beta, height, target), np.asarray(beta, dtype=np.float64)
    if fine is None or crossing is None or crossing <= x[0]:
        return []
    reached = int(np.argmax(np.asarray(height) >= target))
    low, high, step = (round(10**6 * float(b)) for b in (x[reached - 1], x[reached], fine))
    return [k / 10**6 for k in range((low // step + 1) * step, high, step)]


def finer_sweeps(
    points: pa.Table, budgets: Sequence[float], target: float, fine: float | None
) -> dict[str, list[float]]:
    """Return the budgets to measure next by dataset, model, unlearner and selector, with slashes
    between them, by the mean curve at ``budgets`` over the seeds that have a gap."""
    frame, added = points.to_pandas(), {}
    frame = frame[frame.beta.isin([0, *budgets, 1]) & (frame.unlearner != RETRAINING_SOURCE)]
    for pair, of_pair in frame.groupby([*OF_SWEEP], sort=False):
        shares = of_pair.pivot(index="seed", columns="beta", values="recovery").dropna()
        if len(shares):
            mean = shares.to_numpy().mean(axis=0)
            added["/".join(pair)] = finer_budgets(shares.columns, mean, target, fine)
    return added


def curve_arms(
    unlearner: str, selector: str, budgets: Iterable[float], start: str
) -> dict[float, str]:
    """Return the arms of a pair's curve by ascending budget: of retraining from beta 0 to gold, of
    an unlearner from the endpoint ``start`` to the whole forget set."""
    if unlearner == RETRAINING_SOURCE:
        ends, between = ("beta0", "gold"), arms.RETRAINING
    else:
        ends, between = (start, arms.UNLEARNED_WHOLE.format(unlearner=unlearner)), unlearner
    models = {budget: arms.unlearned_arm(between, selector, budget) for budget in sorted(budgets)}
    return {0.0: ends[0], **models, 1.0: ends[1]}


def unlearning_table(
    grid: GridLists,
    starts: Mapping[str, str],
    sweeps: Iterable[Mapping[str, Any]],
    root: str | Path,
) -> pa.Table:
    """Return the table ``unlearning``: a row per cell, unlearner, selector and beta. ``starts`` is
    the endpoint that unlearning starts from, by model. ``sweeps`` name an unlearner and a selector
    with their ``budgets``, where these are not the grid's."""
    swept = {itemgetter(*OF_SWEEP)(sweep): sweep["budgets"] for sweep in sweeps}
    rows: list[_Row] = []
    unlearners = (RETRAINING_SOURCE, *grid["unlearners"])
    for cell, unlearner, selector in product(cells(grid), unlearners, grid["selectors"]):
        run, start = {**cell, "unlearner": unlearner, "selector": selector}, starts[cell["model"]]
        budgets = swept.get(itemgetter(*OF_SWEEP)(run)) or grid["budgets"]
        rows += _points(run, curve_arms(unlearner, selector, budgets, start), start, root)
    return pa.Table.from_pylist(rows, schema=schemas.UNLEARNING.schema)


def _points(run: _Row, models: Mapping[float, str], start: str, root: str | Path) -> Iterator[_Row]:
    """Yield what was measured at each budget of a curve of one run."""
    at_start = read_arm(root, run, start)

    def card(arm: str) -> Any:
        return read_json(paths.under(root, paths.CARD, **run, arm=arm))

    for beta, arm in models.items():
        is_trained = beta > 0 or run["unlearner"] == RETRAINING_SOURCE
        made = card(arm) if is_trained else {"steps": 0}
        row = {**run, "beta": beta, "removed": made.get("removed", 0), "steps": made["steps"]}
        if arm == "gold":
            # The gold standard is trained on all but the forget texts.
            row["removed"] = card("beta0")["texts"] - made["texts"]
        row |= {"stopped_at": made.get("stopped_at"), **read_arm(root, run, arm)}
        row |= {f"start_{name}": at_start[name] for name in ("ppl_forget", "ppl_retain")}
        share = recovery(row["ppl_forget"], row["start_ppl_forget"], row["gold_ppl_forget"])
        yield {**row, "recovery": finite_or_none(float(share))}


class Crossing(NamedTuple):
    """Where a mean curve first reaches the target, with its interval; None beyond the whole set.

    ``by_seed`` (seeds,): that of each seed to first order around that of the mean curve, so that
    one that never gets there has one as well.
    """

    budget: float | None = None
    low: float | None = None
    high: float | None = None
    by_seed: Floats | None = None


def half_gap_table(points: pa.Table, target: float, retain_cap: float) -> pa.Table:
    """Return the table ``half_gap`` of the table ``unlearning``.

    A pair's curve is the mean over seeds of the share of its own gap that each has recovered.
    Seeds without a gap are left out, unless all are: then there is no budget, and perplexities are
    means of all. An interval ends where the 95% t bands of the mean curve first get to the target.
    """
    rows: list[_Row] = []
    frame = points.to_pandas()
    frame["retain"] = frame.ppl_retain / frame.start_ppl_retain
    for names, of_model in frame.groupby(["dataset", "model"], sort=False):
        ends = of_model.groupby("seed", sort=False)[["start_ppl_forget", "gold_ppl_forget"]].first()
        has_gap = ends.gold_ppl_forget > ends.start_ppl_forget
        seeds = [*ends.index[has_gap]]
        start, gold = (ends[has_gap] if seeds else ends).to_numpy().mean(axis=0).tolist()
        head = {"dataset": names[0], "model": names[1], "seeds": len(seeds)}
        head |= {"start_ppl_forget": start, "gold_ppl_forget": gold}
        head["target_ppl_forget"] = start + target * (gold - start)
        printed = HALF_GAPS if names == HALF_GAPS_OF else {}
        crossings, of_pairs = {}, {}
        for pair, curve in of_model.groupby(["unlearner", "selector"], sort=False):
            shares, retain = (
                curve.pivot(index="seed", columns="beta", values=name).loc[seeds]
                for name in ("recovery", "retain")
            )
            beta = shares.columns.to_numpy(np.float64)
            at = crossing(beta, shares.to_numpy(), target) if seeds else Crossing()
            row = {**head, "unlearner": pair[0], "selector": pair[1]}
            row |= {"budget": at.budget, "budget_low": at.low, "budget_high": at.high}
            row |= {"paper_budget": printed.get(pair[0], {}).get(pair[1])}
            row["censored"] = at.budget is None
            if at.budget is not None:
                factor = float(interpolate(beta, retain.to_numpy(), at.budget).max())
                row |= {"retain_factor": factor, "within_cap": factor <= retain_cap}
            crossings[pair], of_pairs[pair] = at, row
        for pair, row in of_pairs.items():
            chance = crossings.get((pair[0], BASELINE), Crossing())
            rows.append(row | saving_columns(crossings[pair], chance))
    return pa.Table.from_pylist(rows, schema=schemas.HALF_GAP.schema)


def crossing(beta: Floats, recovered: Floats, target: float) -> Crossing:
    """Return where the mean of curves (seeds, budgets) at ``beta`` (budgets,) first reaches the
    target, with its 95% interval."""
    mean, low, high, by_seed = recovered.mean(axis=0), None, None, None
    if (seeds := len(recovered)) > 1:
        # Between two measured budgets the curves are straight, but their spread is not.
        steps = np.union1d(beta, np.linspace(beta[0], beta[-1], BAND_STEPS + 1))
        heights = interpolate(beta, recovered, steps)
        half = t_quantile(seeds - 1) * heights.std(axis=0, ddof=1) / np.sqrt(seeds)
        low = first_crossing(steps, heights.mean(axis=0) + half, target)
        high = first_crossing(steps, heights.mean(axis=0) - half, target)
    budget = first_crossing(beta, mean, target)
    if budget is not None and budget > beta[0]:
        after = int(np.searchsorted(beta, budget))
        slope = (mean[after] - mean[after - 1]) / (beta[after] - beta[after - 1])
        by_seed = budget - (interpolate(beta, recovered, budget) - target) / slope
    return Crossing(budget, low, high, by_seed)


def saving_columns(at: Crossing, chance: Crossing) -> _Row:
    """Return the columns ``saving_vs_random`` of a budget against that of random selection, if that
    is known, with the 95% interval of 1 - mean budget / mean chance, of pairs of seeds, by Fieller
    1954: none with one seed, and where the mean of chance is not told from 0."""
    if at.budget is None or not chance.budget:
        return {}
    row: _Row = {"saving_vs_random": 1 - at.budget / chance.budget}
    if at.by_seed is not None and chance.by_seed is not None and (n := len(at.by_seed)) > 1:
        means = np.array([at.by_seed.mean(), chance.by_seed.mean()])
        error = np.cov(at.by_seed, chance.by_seed) / n
        if ends := fieller(means, error, t_quantile(n - 1)):
            row |= {"saving_vs_random_low": 1 - ends[1], "saving_vs_random_high": 1 - ends[0]}
    return row


def savings_table(budgets: pa.Table) -> pa.Table:
    """Return the table ``savings`` of the table ``half_gap``: a row for each dataset, model and
    unlearner, in their order, and a column for each selector of the paper's table."""
    keys, lines = ("dataset", "model", "unlearner"), dict[tuple[str, ...], _Row]()
    for row in budgets.to_pylist():
        line = lines.setdefault(itemgetter(*keys)(row), {key: row[key] for key in keys})
        line[row["selector"]] = row["budget"]
        if row["selector"] == "mamushi" and row["budget"] is not None:
            line |= {"vs_full": 1 - row["budget"], "vs_random": row["saving_vs_random"]}
    return pa.Table.from_pylist([*lines.values()], schema=schemas.SAVINGS.schema)
