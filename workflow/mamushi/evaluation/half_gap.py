"""The tables ``unlearning`` and ``half_gap``: budget-perplexity curves and where they cross.

All curves of a seed have one scale: 0 is the forget perplexity of the model that unlearning starts
from, 1 that of the gold standard, and the target lies between the two, linear between measured
budgets (paper, section "Synergy with Sample-Level Unlearning", after Allouah et al., Table 5). The
deep gap is that of the NLL without word frequencies (``lm.raking``). It is a small part of the
whole, so that which texts are held out matters as seeds do: errors are over both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from mamushi.config import arms
from mamushi.config.grid import cells
from mamushi.evaluation import intervals
from mamushi.evaluation.cohort import NOT_RAKED, RETRAINING_SOURCE, TextSet, cohorts
from mamushi.evaluation.intervals import Floats, contrast, finite_or_none
from mamushi.evaluation.sad import BASELINE, GridLists, read_arm
from mamushi.io import paths, schemas
from mamushi.io.files import read_json
from mamushi.io.names import label, list_table

if TYPE_CHECKING:
    import pandas as pd

BAND_STEPS, DEEP_STEPS = 1000, 100  # Budgets at which the band around a curve is worked out.
HALF_GAPS: Mapping[str, Mapping[str, float]] = {
    "retraining": {"random": 0.62, "coreset": 0.64, "mamushi": 0.24},
    "neggrad_plus": {"random": 0.61, "coreset": 0.26, "mamushi": 0.21},
    "salun": {"random": 0.40, "coreset": 0.35, "mamushi": 0.36},
}
"""The paper's table "Synergy with Sample-Level Unlearning": budgets by unlearner and selector,
as shares, of ``HALF_GAPS_OF``."""
HALF_GAPS_OF = ("newsgroups", "qwen-2.5-7b")
"""The dataset and the model of these, by their names in ``config.yaml``."""
PAIR = ("dataset", "model", "unlearner", "selector")

_Row = dict[str, Any]
DeepShares = Mapping[tuple[Any, ...], float]
"""Shares of the deep gap by dataset, model, seed, unlearner, selector and beta."""


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


def curve_arms(
    unlearner: str, selector: str, budgets: Iterable[float], start: str
) -> dict[float, str]:
    """Return the arms of a pair's curve by ascending budget: of retraining from beta 0 to gold, of
    an unlearner from the endpoint ``start`` to the whole forget set."""
    if unlearner == RETRAINING_SOURCE:
        ends, between = ("beta0", "gold"), arms.RETRAINING
    else:
        ends, between = (start, arms.whole(unlearner)), unlearner
    models = {budget: arms.unlearned(between, selector, budget) for budget in sorted(budgets)}
    return {0.0: ends[0], **models, 1.0: ends[1]}


def swept_arms(
    grid: GridLists, start: str, sweeps: Iterable[Mapping[str, Any]], dataset: str, model: str
) -> Iterator[tuple[str, str, dict[float, str]]]:
    """Yield each unlearner and selector of a dataset and model, retraining first, and the arms of
    its curve: at the ``budgets`` of its sweep, if it has one, else at those of the grid."""
    swept = {tuple(sweep[name] for name in PAIR): sweep["budgets"] for sweep in sweeps}
    for unlearner in (RETRAINING_SOURCE, *grid["unlearners"]):
        for selector in grid["selectors"]:
            budgets = swept.get((dataset, model, unlearner, selector)) or grid["budgets"]
            yield unlearner, selector, curve_arms(unlearner, selector, budgets, start)


def unlearning_table(
    grid: GridLists,
    starts: Mapping[str, str],
    sweeps: Iterable[Mapping[str, Any]],
    root: str | Path,
    deep: DeepShares,
) -> pa.Table:
    """Return the table ``unlearning``: a row per cell, unlearner, selector and beta.

    ``starts`` is the endpoint that unlearning starts from, by model; ``sweeps`` have the keys of
    ``PAIR`` and the ``budgets``.
    """
    rows = []
    for run in cells(grid):
        endpoint = starts[run["model"]]
        start, gold = (read_arm(root, run, name) for name in (endpoint, "gold"))
        pairs = swept_arms(grid, endpoint, sweeps, run["dataset"], run["model"])
        for unlearner, selector, models in pairs:
            for beta, arm in models.items():
                at, card = read_arm(root, run, arm), {"steps": 0}
                if beta > 0 or unlearner == RETRAINING_SOURCE:
                    card = read_json(paths.under(root, paths.CARD, **run, arm=arm))
                removed = card.get("removed", 0)
                if arm == "gold":
                    # The gold standard is trained on all but the forget texts.
                    everything = read_json(paths.under(root, paths.CARD, **run, arm="beta0"))
                    removed = everything["texts"] - card["texts"]
                row = {**run, "unlearner": unlearner, "selector": selector, "beta": beta}
                row["deep"] = deep.get(tuple(row.values()))
                row |= {**at.columns(), **start.columns("start_"), **gold.columns("gold_")}
                row |= {"removed": removed, "stopped_at": card.get("stopped_at")}
                share = recovery(at.ppl_forget, start.ppl_forget, gold.ppl_forget)
                row |= {"steps": card["steps"], "sad": at.sad(gold)}
                rows.append({**row, "recovery": finite_or_none(float(share))})
    return pa.Table.from_pylist(rows, schema=schemas.UNLEARNING.schema)


def deep_gaps(
    grid: GridLists,
    starts: Mapping[str, str],
    sweeps: Iterable[Mapping[str, Any]],
    target: float,
    root: str | Path,
) -> tuple[DeepShares, dict[tuple[str, ...], _Row]]:
    """Return the shares of the deep gap for the table ``unlearning``, and by ``PAIR`` the columns
    of the table ``half_gap``: where they reach ``target``. Arguments as of ``unlearning_table``."""
    points: dict[tuple[Any, ...], float] = {}
    budgets: dict[tuple[str, ...], _Row] = {}
    for cohort in cohorts(grid, root):
        start, texts = starts[cohort.model], cohort.subset(np.flatnonzero(cohort.is_raked))
        low, high = (cohort.nll(arm, deep=True)[:, texts.rows] for arm in (start, "gold"))
        reason = why_no_deep_gap(low, high, texts)
        for *pair, models in swept_arms(grid, start, sweeps, cohort.dataset, cohort.model):
            place = (cohort.dataset, cohort.model, *pair)
            if reason:
                budgets[place] = {"deep_withheld": reason}
                continue
            nll = np.array([cohort.nll(a, deep=True)[:, texts.rows] for a in models.values()])
            shares, columns = deep_curve(np.array(list(models)), nll, low, high, texts, target)
            budgets[place] = columns
            for seed, of_seed in zip(cohort.seeds, shares.tolist(), strict=True):
                at = (cohort.dataset, cohort.model, seed, *pair)
                points |= {(*at, b): s for b, s in zip(models, of_seed, strict=True)}
    return points, budgets


def why_no_deep_gap(start: Floats, gold: Floats, texts: TextSet) -> str | None:
    """Say why nothing is a share of the gap between models (S, m) of raked texts; None where it is
    clearly above 0."""
    if not len(texts.tokens):
        return NOT_RAKED
    gap = contrast(gold, start, texts.tokens, texts.groups)
    return None if gap.low > 0 else gap.reason or intervals.NO_GAP


def deep_curve(
    beta: Floats, nll: Floats, start: Floats, gold: Floats, texts: TextSet, target: float
) -> tuple[Floats, _Row]:
    """Return the change of models (budgets, S, m) at ascending ``beta`` from the start (S, m) as a
    share of the mean gap to gold, (S, budgets), whose mean over seeds is what is recovered of it;
    and the columns ``deep_*`` of ``half_gap``: where that is ``target``, and between which budgets
    no test tells it from that. One seed does not know how far another is, and has no such ends."""
    gap = (gold - start).sum(axis=-1).mean()
    shares = np.asarray((nll - start).sum(axis=-1).T / gap)
    budget, low, high = first_crossing(beta, shares.mean(axis=0), target), None, None
    if len(start) > 1:
        steps = np.union1d(beta, np.linspace(beta[0], beta[-1], DEEP_STEPS + 1))
        aim = start + target * (gold - start)
        between = interpolate(beta, nll.reshape(len(beta), -1).T, steps).T
        effects = [
            contrast(at.reshape(aim.shape), aim, texts.tokens, texts.groups) for at in between
        ]
        low = first_crossing(steps, [effect.high for effect in effects], 0.0)
        high = first_crossing(steps, [effect.low for effect in effects], 0.0)
    ends = {"deep_budget": budget, "deep_budget_low": low, "deep_budget_high": high}
    return shares, {**ends, "deep_censored": budget is None}


class Crossing(NamedTuple):
    """Where a mean curve first reaches the target, with its interval; None beyond the whole set.

    ``by_seed`` (seeds,): that of each seed to first order around that of the mean curve, so that
    one that never gets there has one as well.
    """

    budget: float | None = None
    low: float | None = None
    high: float | None = None
    by_seed: Floats | None = None


def half_gap_table(
    points: pa.Table,
    *,
    target: float,
    retain_cap: float,
    deep: Mapping[tuple[str, ...], Mapping[str, Any]],
) -> pa.Table:
    """Return the table ``half_gap`` of a table ``unlearning``; ``deep`` has the columns of
    ``deep_gaps``.

    A pair's curve is the mean over seeds of the share of its own gap that each has recovered.
    Seeds without a gap are left out, unless all are: then there is no budget, and perplexities are
    means of all. An interval ends where the 95% t bands of the mean curve first get to the target.
    """
    rows: list[_Row] = []
    for names, group in points.to_pandas().groupby(["dataset", "model"], sort=False):
        printed = HALF_GAPS if names == HALF_GAPS_OF else {}
        for row in _pair_rows(group, target, retain_cap):
            pair = row["unlearner"], row["selector"]
            budget = printed.get(pair[0], {}).get(pair[1])
            head = {"dataset": names[0], "model": names[1], "paper_budget": budget}
            rows.append({**head, **row, **deep.get((*names, *pair), {})})
    return pa.Table.from_pylist(rows, schema=schemas.HALF_GAP.schema)


def _pair_rows(points: pd.DataFrame, target: float, retain_cap: float) -> Iterator[_Row]:
    """Yield the rows of one dataset and model, one for each unlearner and selector."""
    ends = points.groupby("seed", sort=False)[["start_ppl_forget", "gold_ppl_forget"]].first()
    has_gap = ends.gold_ppl_forget > ends.start_ppl_forget
    seeds = [*ends.index[has_gap]]
    start, gold = (ends[has_gap] if seeds else ends).to_numpy().mean(axis=0).tolist()
    level = {"seeds": len(seeds), "start_ppl_forget": start, "gold_ppl_forget": gold}
    level["target_ppl_forget"] = start + target * (gold - start)
    curves, crossings = {}, {}
    points = points.assign(retain=points.ppl_retain / points.start_ppl_retain)
    for pair, curve in points.groupby(["unlearner", "selector"], sort=False):
        shares, retain = (
            curve.pivot(index="seed", columns="beta", values=name).loc[seeds]
            for name in ("recovery", "retain")
        )
        beta = shares.columns.to_numpy(np.float64)
        curves[pair] = beta, retain.to_numpy()
        crossings[pair] = crossing(beta, shares.to_numpy(), target) if seeds else Crossing()
    for pair, at in crossings.items():
        row = {"unlearner": pair[0], "selector": pair[1], **level, "censored": at.budget is None}
        row |= {"budget": at.budget, "budget_low": at.low, "budget_high": at.high}
        if at.budget is not None:
            factor = float(interpolate(*curves[pair], at.budget).max())
            row |= {"retain_factor": factor, "within_cap": factor <= retain_cap}
            row |= saving(at, crossings.get((pair[0], BASELINE), Crossing()))
        yield row


def crossing(beta: Floats, recovered: Floats, target: float) -> Crossing:
    """Return where the mean of curves (seeds, budgets) at ``beta`` (budgets,) first reaches the
    target, with its 95% interval."""
    mean, low, high, by_seed = recovered.mean(axis=0), None, None, None
    if (seeds := len(recovered)) > 1:
        # Between two measured budgets the curves are straight, but their spread is not.
        steps = np.union1d(beta, np.linspace(beta[0], beta[-1], BAND_STEPS + 1))
        heights = interpolate(beta, recovered, steps)
        half = intervals.t_quantile(seeds - 1) * heights.std(axis=0, ddof=1) / np.sqrt(seeds)
        low = first_crossing(steps, heights.mean(axis=0) + half, target)
        high = first_crossing(steps, heights.mean(axis=0) - half, target)
    budget = first_crossing(beta, mean, target)
    if budget is not None and budget > beta[0]:
        after = int(np.searchsorted(beta, budget))
        slope = (mean[after] - mean[after - 1]) / (beta[after] - beta[after - 1])
        by_seed = budget - (interpolate(beta, recovered, budget) - target) / slope
    return Crossing(budget, low, high, by_seed)


def saving(at: Crossing, chance: Crossing) -> _Row:
    """Return the columns ``saving_vs_random`` of a budget against that of random selection, if that
    is known, with the 95% interval of 1 - mean budget / mean chance, of pairs of seeds, by Fieller
    1954: none with one seed, and where the mean of chance is not told from 0."""
    if at.budget is None or not chance.budget:
        return {}
    row: _Row = {"saving_vs_random": 1 - at.budget / chance.budget}
    if at.by_seed is not None and chance.by_seed is not None and (n := len(at.by_seed)) > 1:
        means = np.array([at.by_seed.mean(), chance.by_seed.mean()])
        error = np.cov(at.by_seed, chance.by_seed) / n
        if ends := intervals.fieller(means, error, intervals.t_quantile(n - 1)):
            row |= {"saving_vs_random_low": 1 - ends[1], "saving_vs_random_high": 1 - ends[0]}
    return row


def synergy(budgets: pa.Table) -> str:
    """Return a table ``half_gap`` in the form of the paper's (section "Synergy with Sample-Level
    Unlearning"), in reStructuredText: for each dataset and model a row per selector and a column
    per unlearner, with savings against the full forget set and against random."""
    texts = []
    for names, rows in groupby(budgets.to_pylist(), itemgetter("dataset", "model")):
        selectors: dict[str, dict[str, str]] = {}
        for row in rows:
            selectors.setdefault(row["selector"], {})[row["unlearner"]] = _cell(row)
        head = ["Selector", *map(label, next(iter(selectors.values())))]
        lines = [[label(name), *cells.values()] for name, cells in selectors.items()]
        texts.append(list_table(", ".join(map(label, names)), head, lines))
    return "\n".join(texts)


def _cell(row: _Row) -> str:
    """Return a budget in per cent with its interval and savings, and what the paper prints."""
    words = [_per_cent(None)]
    if row["budget"] is not None:
        words = [f"{_shown(row, 'budget')}; vs. full {_per_cent(1 - row['budget'])}"]
    if row["saving_vs_random"] is not None and row["selector"] != BASELINE:
        words[0] += f", vs. random {_per_cent(row['saving_vs_random'])}"
    if row["within_cap"] is False:
        words.append("retain perplexity above the cap")
    if row["deep_censored"] is not None:
        words.append(f"deep {_shown(row, 'deep_budget')}")
    if (printed := row["paper_budget"]) is not None:
        words.append(f"paper {_per_cent(printed)}, vs. full {_per_cent(1 - printed)}")
    return "; ".join(words)


def _shown(row: _Row, name: str) -> str:
    """Return a budget in per cent, with its interval where there are several seeds."""
    at, low, high = (_per_cent(row[f"{name}{end}"]) for end in ("", "_low", "_high"))
    return f"{at} [{low}, {high}]" if row["seeds"] > 1 else at


def _per_cent(share: float | None) -> str:
    return "above 100%" if share is None else f"{100 * share:.0f}%"
