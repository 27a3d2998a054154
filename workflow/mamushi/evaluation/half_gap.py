"""The tables ``unlearning`` and ``half_gap``: budget-perplexity curves and where they cross.

All curves of a seed are measured against one scale: 0 is the forget perplexity of the model that
unlearning starts from, 1 that of the gold standard, and the target lies between the two (paper,
section "Synergy with Sample-Level Unlearning": "halfway from contaminated to oracle model").
Retraining does not start there but at beta 0, from which nothing was removed. Where unlearning
starts at beta 0 too, the default, all curves share both scale and first point; where it starts at
the contaminated model, retraining is still held against the same target, or its budget could not be
compared with theirs, and its curve begins off 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from mamushi.artifacts import paths, schemas
from mamushi.artifacts.files import read_json
from mamushi.configuration.grid import cells
from mamushi.errors import UserError
from mamushi.evaluation.crossing import (
    first_crossing,
    first_crossings,
    interpolate,
    recovery,
    recrossings,
)
from mamushi.evaluation.curves import Grid, Perplexity, read_perplexity
from mamushi.evaluation.sad import Floats

RETRAINING = "retraining"
"""What stands in the column ``unlearner`` for training without the examples."""
BASELINE = "random"
CONFIDENCE = 0.95
BOOTSTRAP_SEED = 0
"""Seed of the resamples (NumPy's PCG64), anew for each dataset and model: the same rows give the
same intervals whatever else is in the table."""


@dataclass(frozen=True)
class Point:
    """One measured model of a curve: how it was made, and its held-out perplexity."""

    beta: float
    removed: int
    steps: int
    stopped_at: int | None
    at: Perplexity


def unlearning_table(
    grid: Grid, starts: Mapping[str, str], root: str | Path = "results"
) -> pa.Table:
    """The table ``unlearning``: a row per dataset, model, seed, unlearner, selector and beta.

    ``grid`` has the lists ``datasets, models, seeds, selectors, unlearners, budgets``; ``starts``
    is the endpoint that unlearning starts from, by model. Retraining comes first, at ``budgets``;
    an unlearner is read at the budgets of its sweep. The columns ``start_*`` and ``gold_*`` are the
    two ends of the scale, the same for all rows of a seed. Raises ``UserError`` that names the
    first missing or damaged file.
    """
    rows = [row for run in cells(grid) for row in _run_rows(run, grid, starts, root)]
    return pa.Table.from_pylist(rows, schema=schemas.UNLEARNING.schema)


def _run_rows(
    run: dict[str, Any], grid: Grid, starts: Mapping[str, str], root: str | Path
) -> Iterator[dict[str, Any]]:
    start = _endpoint(run, starts[run["model"]], root)
    gold = _endpoint(run, "gold", root)
    scale = {
        "start_ppl_forget": start.ppl_forget,
        "start_ppl_retain": start.ppl_retain,
        "gold_ppl_forget": gold.ppl_forget,
        "gold_ppl_retain": gold.ppl_retain,
    }
    for unlearner in (RETRAINING, *grid["unlearners"]):
        for selector in grid["selectors"]:
            if unlearner == RETRAINING:
                points = _retrained(run, selector, sorted(grid["budgets"]), root)
            else:
                pair = {"unlearner": unlearner, "selector": selector}
                points = [Point(0.0, 0, 0, None, start), *_unlearned(run, pair, root)]
            shares = recovery([p.at.ppl_forget for p in points], start.ppl_forget, gold.ppl_forget)
            for point, share in zip(points, shares, strict=True):
                yield {
                    **run,
                    "unlearner": unlearner,
                    "selector": selector,
                    "beta": point.beta,
                    "removed": point.removed,
                    "steps": point.steps,
                    "stopped_at": point.stopped_at,
                    "ppl_forget": point.at.ppl_forget,
                    "ppl_retain": point.at.ppl_retain,
                    **scale,
                    "recovery": _known(share),
                }


def _endpoint(run: Mapping[str, Any], endpoint: str, root: str | Path) -> Perplexity:
    return read_perplexity(paths.under(root, paths.PERPLEXITY_ENDPOINT, **run, endpoint=endpoint))


def _retrained(
    run: Mapping[str, Any], selector: str, budgets: Sequence[float], root: str | Path
) -> list[Point]:
    """Retraining from beta 0, with all forget texts, to the gold standard, without any."""

    def trained(endpoint: str) -> tuple[int, int]:
        path = paths.under(root, paths.TRAIN_CARD, **run, endpoint=endpoint)
        card = _card(path, "texts", "steps")
        return card["texts"], card["steps"]

    all_texts, first_steps = trained("beta0")
    retain_texts, last_steps = trained("gold")
    points = [Point(0.0, 0, first_steps, None, _endpoint(run, "beta0", root))]
    for budget in budgets:
        cell = {**run, "selector": selector, "beta": paths.beta(budget)}
        card = _card(paths.under(root, paths.RETRAINED_CARD, **cell), "removed", "steps")
        at = read_perplexity(paths.under(root, paths.PERPLEXITY, **cell))
        points.append(Point(budget, card["removed"], card["steps"], None, at))
    gold = _endpoint(run, "gold", root)
    return [*points, Point(1.0, all_texts - retain_texts, last_steps, None, gold)]


def _unlearned(run: Mapping[str, Any], pair: Mapping[str, str], root: str | Path) -> list[Point]:
    """Unlearning at the budgets of the pair's sweep, and on the whole forget set."""
    data = {"dataset": run["dataset"], "model": run["model"]}
    measured = [
        (
            budget,
            paths.under(root, paths.UNLEARNED_CARD, **run, **pair, beta=paths.beta(budget)),
            paths.under(root, paths.PERPLEXITY_UNLEARNED, **run, **pair, beta=paths.beta(budget)),
        )
        for budget in _swept(paths.under(root, paths.SWEEP, **data, **pair))
    ]
    whole = {**run, "unlearner": pair["unlearner"]}
    last = (
        1.0,
        paths.under(root, paths.WHOLE_CARD, **whole),
        paths.under(root, paths.PERPLEXITY_WHOLE, **whole),
    )
    points = []
    for budget, path, perplexity in [*measured, last]:
        card = _card(path, "removed", "steps", may_be_null="stopped_at")
        at = read_perplexity(perplexity)
        points.append(Point(budget, card["removed"], card["steps"], card["stopped_at"], at))
    return points


def _swept(path: Path) -> list[float]:
    """The budgets of a sweep, ascending. Raises ``UserError`` when the file does not hold them."""
    sweep = read_json(path)
    budgets = sweep.get("budgets") if isinstance(sweep, dict) else None
    if not isinstance(budgets, list) or not all(
        isinstance(budget, float) and 0 < budget < 1 for budget in budgets
    ):
        raise UserError(
            "no list 'budgets' of numbers between 0 and 1",
            where=path,
            do="delete it and run again",
        )
    return sorted(budgets)


def _card(path: Path, *counts: str, may_be_null: str | None = None) -> dict[str, Any]:
    """A model's card. Raises ``UserError`` when it lacks one of the whole numbers."""
    card = read_json(path)
    found = card if isinstance(card, dict) else {}
    lacking = [name for name in counts if type(found.get(name)) is not int]
    if may_be_null is not None and type(found.get(may_be_null, ...)) not in (int, type(None)):
        lacking.append(may_be_null)
    if lacking:
        raise UserError(
            f"no whole number {', '.join(map(repr, lacking))}",
            where=path,
            do="delete it and run again",
        )
    return found


@dataclass(frozen=True)
class Curves:
    """One unlearner's and selector's curves, of the seeds that have a gap to recover."""

    beta: Floats
    """(budgets,), from 0 to 1."""
    recovery: Floats
    """(seeds, budgets)."""
    retain: Floats
    """(seeds, budgets): retain perplexity as a factor of the start's."""


def half_gap_table(
    points: pa.Table, *, target: float, retain_cap: float, resamples: int
) -> pa.Table:
    """The table ``half_gap`` of a table ``unlearning``.

    A pair's curve is the mean over seeds of the share of its own gap that each has recovered.
    Seeds whose gold standard is no worse on the forget domain than the start have no gap and are
    left out; ``seeds`` counts the others, which ``start``, ``target`` and ``gold`` are means of.
    Where it is 0 there is nothing to recover: no budget, ``censored``, and the perplexities are
    means of all seeds.

    Intervals are 95% percentiles of ``resamples`` resamples of the seeds, the same for all
    unlearners and selectors of a dataset and model. Their ends are order statistics, the outer ones
    where a percentile falls between two, since a budget beyond the whole forget set is not a number
    to interpolate with.
    """
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in points.to_pylist():
        groups.setdefault((row["dataset"], row["model"]), []).append(row)
    rows = []
    for (dataset, model), group in groups.items():
        for found in _pair_rows(group, target, retain_cap, resamples):
            rows.append({"dataset": dataset, "model": model, **found})
    return pa.Table.from_pylist(rows, schema=schemas.HALF_GAP.schema)


def _pair_rows(
    rows: list[dict[str, Any]], target: float, retain_cap: float, resamples: int
) -> Iterator[dict[str, Any]]:
    """The rows of one dataset and model."""
    ends = {row["seed"]: (row["start_ppl_forget"], row["gold_ppl_forget"]) for row in rows}
    seeds = [seed for seed, (start, gold) in ends.items() if gold > start]
    start, gold = np.mean([ends[seed] for seed in seeds or ends], axis=0).tolist()
    pairs = list(dict.fromkeys((row["unlearner"], row["selector"]) for row in rows))
    level = {
        "seeds": len(seeds),
        "start_ppl_forget": start,
        "target_ppl_forget": start + target * (gold - start),
        "gold_ppl_forget": gold,
    }
    if not seeds:
        for unlearner, selector in pairs:
            yield {"unlearner": unlearner, "selector": selector, **level, **NO_GAP}
        return
    curves = {pair: _curves(rows, pair, seeds) for pair in pairs}
    budgets = {
        pair: first_crossing(curve.beta, curve.recovery.mean(axis=0), target)
        for pair, curve in curves.items()
    }
    weights = resampled(len(seeds), resamples) if len(seeds) > 1 else None
    draws = {
        pair: None
        if weights is None
        else first_crossings(curve.beta, weights @ curve.recovery, target)
        for pair, curve in curves.items()
    }
    for pair, curve in curves.items():
        unlearner, selector = pair
        chance = (unlearner, BASELINE)
        yield {
            "unlearner": unlearner,
            "selector": selector,
            **level,
            **_crossing(curve, budgets[pair], target, retain_cap),
            **_interval(draws[pair]),
            **_saving(
                selector,
                budgets[pair],
                budgets.get(chance),
                draws[pair],
                draws.get(chance),
            ),
        }


NO_GAP: Mapping[str, Any] = {"censored": True, "recrossings": 0}
"""The row of a pair without a gap in any seed; all that it leaves out is null."""


def _curves(rows: list[dict[str, Any]], pair: tuple[str, str], seeds: Sequence[int]) -> Curves:
    own = [row for row in rows if (row["unlearner"], row["selector"]) == pair]
    by_seed = [
        sorted((row for row in own if row["seed"] == seed), key=lambda row: float(row["beta"]))
        for seed in seeds
    ]
    return Curves(
        beta=np.array([row["beta"] for row in by_seed[0]]),
        recovery=np.array([[row["recovery"] for row in curve] for curve in by_seed]),
        retain=np.array(
            [[row["ppl_retain"] / row["start_ppl_retain"] for row in curve] for curve in by_seed]
        ),
    )


def _crossing(
    curve: Curves, budget: float | None, target: float, retain_cap: float
) -> dict[str, Any]:
    mean = curve.recovery.mean(axis=0)
    factor = None if budget is None else float(interpolate(curve.beta, curve.retain, budget).max())
    return {
        "budget": budget,
        "censored": budget is None,
        "recrossings": recrossings(curve.beta, mean, target),
        "retain_factor": factor,
        "within_cap": None if factor is None else factor <= retain_cap,
        "saving_vs_full": None if budget is None else 1 - budget,
    }


def resampled(seeds: int, resamples: int) -> Floats:
    """Weights ``(resamples, seeds)`` of as many draws of the seeds with replacement; rows sum to 1.

    ``weights @ curves`` are the resampled mean curves of any ``curves (seeds, budgets)``.
    """
    generator = np.random.default_rng(BOOTSTRAP_SEED)
    counts = generator.multinomial(seeds, np.full(seeds, 1 / seeds), size=resamples)
    return np.asarray(counts / seeds, dtype=np.float64)


def _percentiles(low: Floats, high: Floats) -> tuple[float | None, float | None]:
    """The ends of the interval, from the lower and upper bound of each resample; None where one is
    infinite."""
    outside = (1 - CONFIDENCE) / 2 * (len(low) - 1)
    place = int(np.floor(outside))
    ends = np.sort(low)[place], np.sort(high)[len(high) - 1 - place]
    return _known(ends[0]), _known(ends[1])


def _interval(draws: Floats | None) -> dict[str, Any]:
    if draws is None:
        return {"budget_low": None, "budget_high": None, "censored_share": None}
    low, high = _percentiles(draws, draws)
    return {
        "budget_low": low,
        "budget_high": high,
        "censored_share": float(np.isinf(draws).mean()),
    }


def _saving(
    selector: str,
    budget: float | None,
    chance: float | None,
    draws: Floats | None,
    chance_draws: Floats | None,
) -> dict[str, Any]:
    """The relative saving against random selection: null where either budget is not known, or where
    random needs none, so that nothing can be saved."""
    value, low, high = None, None, None
    if budget is not None and chance:
        value = 1 - budget / chance
        if draws is not None and chance_draws is not None:
            low, high = (
                # Random against itself saves nothing, also where it is censored.
                (0.0, 0.0)
                if selector == BASELINE
                else _percentiles(*saving_bounds(draws, chance_draws))
            )
    return {
        "saving_vs_random": value,
        "saving_vs_random_low": low,
        "saving_vs_random_high": high,
    }


def saving_bounds(budget: Floats, chance: Floats) -> tuple[Floats, Floats]:
    """Between which savings ``1 - budget / chance`` each resample lies; arguments ``(resamples,)``.

    An infinite budget lies somewhere beyond 1, the whole forget set. So where random alone is
    censored, the saving is between ``1 - budget`` and all; where the selector is, nothing bounds
    the loss, and ``1 - 1 / chance`` bounds the saving. Where random needs no example, a selector
    that needs none either saves 0, and any other loses without bound.
    """
    some = np.where(chance > 0, chance, 1.0)
    nothing = np.where(budget > 0, -np.inf, 0.0)
    low = np.where(chance > 0, 1 - budget / np.minimum(some, 1.0), nothing)
    high = np.where(chance > 0, 1 - np.minimum(budget, 1.0) / some, nothing)
    return low, high


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
