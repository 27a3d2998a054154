"""The tables ``unlearning`` and ``half_gap``: budget-perplexity curves and where they cross.

All curves of a seed have one scale: 0 is the forget perplexity of the model that unlearning starts
from, 1 that of the gold standard, and the target lies between the two (paper, section "Synergy with
Sample-Level Unlearning").
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from mamushi.config import arms
from mamushi.config.grid import cells
from mamushi.evaluation.cohort import RETRAINING_SOURCE
from mamushi.evaluation.crossing import (
    first_crossing,
    first_crossings,
    interpolate,
    recovery,
    recrossings,
)
from mamushi.evaluation.curves import GridLists, read_arm
from mamushi.evaluation.paired import finite_or_none, t_quantile
from mamushi.evaluation.sad import Floats
from mamushi.evaluation.summary import BASELINE
from mamushi.io import paths, schemas
from mamushi.io.files import read_json
from mamushi.io.names import label
from mamushi.io.rst import list_table

BAND_STEPS = 1000  # Budgets at which the band around a mean curve is worked out.

HALF_GAPS: Mapping[tuple[str, str], float] = {
    ("retraining", "random"): 0.62,
    ("retraining", "coreset"): 0.64,
    ("retraining", "mamushi"): 0.24,
    ("neggrad_plus", "random"): 0.61,
    ("neggrad_plus", "coreset"): 0.26,
    ("neggrad_plus", "mamushi"): 0.21,
    ("salun", "random"): 0.40,
    ("salun", "coreset"): 0.35,
    ("salun", "mamushi"): 0.36,
}
"""The paper's table "Synergy with Sample-Level Unlearning": budgets by unlearner and selector,
as shares, of ``HALF_GAPS_OF``."""
HALF_GAPS_OF = ("newsgroups", "qwen-2.5-7b")
"""The dataset and the model of these, by their names in ``config.yaml``."""

OPEN = "above 100%"

_Row = dict[str, Any]

PAIR = ("dataset", "model", "unlearner", "selector")
POINT = ("dataset", "model", "seed", "unlearner", "selector", "beta")


def unlearning_table(
    grid: GridLists,
    starts: Mapping[str, str],
    sweeps: Iterable[Mapping[str, Any]],
    root: str | Path = "results",
    deep: Mapping[tuple[Any, ...], float] = MappingProxyType({}),
) -> pa.Table:
    """Return the table ``unlearning``: a row per cell, unlearner, selector and beta.

    ``starts`` is the endpoint that unlearning starts from, by model. Retraining comes first, at
    ``budgets``; an unlearner is read at the ``budgets`` of its sweep, which has the ``dataset``,
    ``model``, ``unlearner`` and ``selector`` beside them. ``deep`` has the shares of
    ``deep_gap.DeepGaps``.
    """
    budgets = sweep_budgets(sweeps)
    rows = [
        {**row, "deep": deep.get(tuple(row[name] for name in POINT))}
        for run in cells(grid)
        for row in _run_rows(run, grid, starts[run["model"]], budgets, root)
    ]
    return pa.Table.from_pylist(rows, schema=schemas.UNLEARNING.schema)


def sweep_budgets(sweeps: Iterable[Mapping[str, Any]]) -> dict[tuple[str, ...], list[float]]:
    """Return the budgets of sweeps, ascending, by dataset, model, unlearner and selector."""
    return {tuple(sweep[name] for name in PAIR): sorted(sweep["budgets"]) for sweep in sweeps}


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


def _run_rows(
    run: _Row, grid: GridLists, endpoint: str, sweeps: Mapping[Any, list[float]], root: str | Path
) -> Iterator[_Row]:
    start, gold = (read_arm(root, run, name) for name in (endpoint, "gold"))
    for unlearner, selector in product((RETRAINING_SOURCE, *grid["unlearners"]), grid["selectors"]):
        is_retrained = unlearner == RETRAINING_SOURCE
        pair = run["dataset"], run["model"], unlearner, selector
        budgets = grid["budgets"] if is_retrained else sweeps[pair]
        models = curve_arms(unlearner, selector, budgets, endpoint)
        cards = {
            beta: read_json(paths.under(root, paths.CARD, **run, arm=arm))
            for beta, arm in models.items()
            if beta > 0 or is_retrained
        }
        for beta, arm in models.items():
            at, card = read_arm(root, run, arm), cards.get(beta, {})
            made = {"removed": 0, "steps": card.get("steps", 0), "stopped_at": None}
            if is_retrained and beta == 1:
                # The gold standard is trained on all but the forget texts.
                made["removed"] = cards[0.0]["texts"] - card["texts"]
            elif beta > 0:
                made |= {"removed": card["removed"], "stopped_at": card.get("stopped_at")}
            share = recovery(at.ppl_forget, start.ppl_forget, gold.ppl_forget)
            yield {
                **{**run, "unlearner": unlearner, "selector": selector, "beta": beta, **made},
                **{**at.columns(), **start.columns("start_"), **gold.columns("gold_")},
                **{"sad": at.sad(gold), "recovery": finite_or_none(float(share))},
            }


def synergy(budgets: pa.Table) -> str:
    """Return a table ``half_gap`` in the form of the paper's (section "Synergy with Sample-Level
    Unlearning"), in reStructuredText: for each dataset and model a row per selector and a column
    per unlearner, with savings against the full forget set and against random."""
    tables: dict[tuple[str, str], dict[str, dict[str, str]]] = {}
    for row in budgets.to_pylist():
        selectors = tables.setdefault((row["dataset"], row["model"]), {})
        selectors.setdefault(row["selector"], {})[row["unlearner"]] = _cell(row)
    texts = []
    for names, selectors in tables.items():
        head = ["Selector", *map(label, next(iter(selectors.values())))]
        rows = [[label(name), *cells.values()] for name, cells in selectors.items()]
        texts.append(list_table(", ".join(map(label, names)), head, rows))
    return "\n".join(texts)


def _cell(row: _Row) -> str:
    """Return a budget in per cent with its interval and savings, and what the paper prints."""
    budget, low, high = (row[name] for name in ("budget", "budget_low", "budget_high"))
    if budget is None:
        words = OPEN
    else:
        ends = f" [{_per_cent(low)}, {_per_cent(high)}]" if row["seeds"] > 1 else ""
        words = f"{_per_cent(budget)}{ends}; vs. full {_per_cent(1 - budget)}"
        if row["saving_vs_random"] is not None and row["selector"] != BASELINE:
            words += f", vs. random {_per_cent(row['saving_vs_random'])}"
        if not row["within_cap"]:
            words += "; retain perplexity above the cap"
    if row["deep_censored"] is not None:
        words += f"; deep {_per_cent(row['deep_budget'])}"
        if row["seeds"] > 1:
            low, high = (_per_cent(row[f"deep_budget_{end}"]) for end in ("low", "high"))
            words += f" [{low}, {high}]"
    if row["paper_budget"] is not None:
        printed = row["paper_budget"]
        words += f"; paper {_per_cent(printed)}, vs. full {_per_cent(1 - printed)}"
    return words


def _per_cent(share: float | None) -> str:
    return OPEN if share is None else f"{100 * share:.0f}%"


class Crossing(NamedTuple):
    """Where a mean curve first reaches the target, with its interval; None beyond the whole set.

    ``by_seed`` (seeds,): that of each seed to first order around that of the mean curve, so that
    one that never gets there has one as well.
    """

    budget: float | None
    low: float | None
    high: float | None
    by_seed: Floats | None


def half_gap_table(
    points: pa.Table,
    *,
    target: float,
    retain_cap: float,
    deep: Mapping[tuple[str, ...], Mapping[str, Any]] = MappingProxyType({}),
) -> pa.Table:
    """Return the table ``half_gap`` of a table ``unlearning``; ``deep`` has the columns of
    ``deep_gap.DeepGaps``.

    A pair's curve is the mean over seeds of the share of its own gap that each has recovered.
    Seeds whose gold standard is no worse on the forget domain than the start are left out, unless
    all are: then there is no budget, and perplexities are means of all. The 95% interval of a
    budget ends where the t bands of the mean curve first get to the target.
    """
    groups: dict[tuple[str, str], list[_Row]] = {}
    for row in points.to_pylist():
        groups.setdefault((row["dataset"], row["model"]), []).append(row)
    rows: list[_Row] = []
    for (dataset, model), group in groups.items():
        printed = HALF_GAPS if (dataset, model) == HALF_GAPS_OF else {}
        for row in _pair_rows(group, target, retain_cap):
            pair = row["unlearner"], row["selector"]
            row |= {"dataset": dataset, "model": model, "paper_budget": printed.get(pair)}
            rows.append({**row, **deep.get((dataset, model, *pair), {})})
    return pa.Table.from_pylist(rows, schema=schemas.HALF_GAP.schema)


def _pair_rows(rows: list[_Row], target: float, retain_cap: float) -> Iterator[_Row]:
    """Yield the rows of one dataset and model, one for each unlearner and selector."""
    ends = {row["seed"]: (row["start_ppl_forget"], row["gold_ppl_forget"]) for row in rows}
    seeds = [seed for seed, (start, gold) in ends.items() if gold > start]
    start, gold = np.mean([ends[seed] for seed in seeds or ends], axis=0).tolist()
    level = {
        "seeds": len(seeds),
        "start_ppl_forget": start,
        "target_ppl_forget": start + target * (gold - start),
        "gold_ppl_forget": gold,
    }
    curves = {
        pair: _curves(rows, pair, seeds or list(ends))
        for pair in dict.fromkeys((row["unlearner"], row["selector"]) for row in rows)
    }
    crossings = {
        pair: crossing(beta, shares, target) if seeds else Crossing(None, None, None, None)
        for pair, (beta, shares, _) in curves.items()
    }
    for pair, (beta, shares, retain) in curves.items():
        at = crossings[pair]
        row = {"unlearner": pair[0], "selector": pair[1], **level, "censored": at.budget is None}
        row["recrossings"] = recrossings(shares.mean(axis=0), target) if seeds else 0
        row |= {"budget": at.budget, "budget_low": at.low, "budget_high": at.high}
        if at.budget is not None:
            factor = float(interpolate(beta, retain, at.budget).max())
            row |= {"retain_factor": factor, "within_cap": factor <= retain_cap}
        yield {**row, **_saving(at, crossings.get((pair[0], BASELINE)))}


def _curves(
    rows: list[_Row], pair: tuple[str, str], seeds: Sequence[int]
) -> tuple[Floats, Floats, Floats]:
    """Return a pair's budgets (budgets,), of its seeds the shares that are recovered, and retain
    perplexity as a factor of the start's, (seeds, budgets)."""
    points = [row for row in rows if (row["unlearner"], row["selector"]) == pair]
    points.sort(key=lambda row: float(row["beta"]))
    by_seed = [[row for row in points if row["seed"] == seed] for seed in seeds]
    retain = [[row["ppl_retain"] / row["start_ppl_retain"] for row in curve] for curve in by_seed]
    shares = [[row["recovery"] for row in curve] for curve in by_seed]
    beta = [row["beta"] for row in by_seed[0]]
    return np.array(beta), np.array(shares, dtype=np.float64), np.array(retain)


def crossing(beta: Floats, recovered: Floats, target: float) -> Crossing:
    """Return where the mean of curves (seeds, budgets) at ``beta`` (budgets,) first reaches the
    target, with its 95% interval."""
    mean, low, high, by_seed = recovered.mean(axis=0), None, None, None
    if (seeds := len(recovered)) > 1:
        # Between two measured budgets the curves are straight, but their spread is not.
        steps = np.union1d(beta, np.linspace(beta[0], beta[-1], BAND_STEPS + 1))
        heights = np.array([np.interp(steps, beta, curve) for curve in recovered])
        half = t_quantile(seeds - 1) * heights.std(axis=0, ddof=1) / np.sqrt(seeds)
        band = np.stack([heights.mean(axis=0) + half, heights.mean(axis=0) - half])
        low, high = map(finite_or_none, first_crossings(steps, band, target))
    budget = first_crossing(beta, mean, target)
    if budget is not None and budget > beta[0]:
        after = int(np.searchsorted(beta, budget))
        slope = (mean[after] - mean[after - 1]) / (beta[after] - beta[after - 1])
        by_seed = budget - (interpolate(beta, recovered, budget) - target) / slope
    return Crossing(budget, low, high, by_seed)


def _saving(at: Crossing, chance: Crossing | None) -> _Row:
    """Return the relative saving against random selection with its interval, if both are known."""
    if chance is None or at.budget is None or not chance.budget:
        return {}
    row: _Row = {"saving_vs_random": 1 - at.budget / chance.budget}
    if at.by_seed is not None and chance.by_seed is not None:
        low, high = saving_interval(at.by_seed, chance.by_seed)
        row |= {"saving_vs_random_low": low, "saving_vs_random_high": high}
    return row


def saving_interval(budget: Floats, chance: Floats) -> tuple[float | None, float | None]:
    """Return the 95% interval of 1 - mean budget / mean chance, of pairs (seeds,), by Fieller 1954.

    None with one seed, and where the mean of ``chance`` is not told from 0.
    """
    n = len(budget)
    if n == 1:
        return None, None
    means = np.array([budget.mean(), chance.mean()])
    terms = np.outer(means, means) - t_quantile(n - 1) ** 2 * np.cov(budget, chance) / n
    (cc, cr), (_, rr) = terms.tolist()
    if rr <= 0:
        return None, None
    width = np.sqrt(max(cr**2 - rr * cc, 0.0))
    return float(1 - (cr + width) / rr), float(1 - (cr - width) / rr)
