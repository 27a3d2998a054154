"""Whether what is advised holds, on random worlds whose truth is known.

    python -m studies.worlds.run [--worlds 1000] [--nulls 200] [--processes 2]

A world is a forget and a retain domain with a known density ratio: normal, normal with unequal
variances, or mixtures, of an AUC from 0.5 to 0.99, with 200 to 20,000 texts of which a share of
0.02 to 0.6 is to be forgotten. Its scores are the true log ratios on a wrong scale, with folds
shifted against each other, or those of a cross-fitted logistic regression or MLP. Through the very
functions of the workflow go scores, refits, calibration, verdict, frontier and advice. Compared
with the truth are the advised budgets, for half of the removal and for 0.05 nats of preservation,
with the exact budgets of the same ranking, and the bound on the share of a list that the retain
domain would produce as well, at all budgets at once. Null worlds have two equal domains.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import norm

from mamushi.evidence.advice import predicted_budget
from mamushi.evidence.bootstrap import bands
from mamushi.evidence.calibration import RatioScores, halves_of
from mamushi.evidence.frontier import RemovalOrder, removal_order
from mamushi.evidence.verdict import judge_scores, ratio_checks, share_bound
from mamushi.registry import load, plugin
from mamushi.running.progress import Progress
from mamushi.selection.folds import stratified_folds
from mamushi.selection.pool import Pool
from mamushi.selection.refits import WHOLE_REFIT, make_refits
from studies.lib.report import Report
from studies.worlds.exact import Truth, exact

Doubles = NDArray[np.float64]
BUDGETS = np.linspace(0, 1, 51)
FINE = np.linspace(0, 1, 501)
TARGETS = (("removal", 0.5), ("preservation", 0.05))
RESAMPLES = 100
FRESH = 40_000
"""Texts of each domain for what the truth is an average of."""
MLP = {"hidden": [128, 64], "batch_size": 256, "seeds_averaged": 2}
LARGEST_MLP = 3000


@dataclass(frozen=True)
class World:
    """Features ``x`` (n, d), forget texts first, with their exact log ratios; ``draw(domain, m)``
    gives fresh features and ``ratio`` the exact log ratios of any."""

    x: Doubles
    forget: NDArray[np.bool_]
    ratio: Callable[[Doubles], Doubles]
    draw: Callable[[int, int], Doubles]


def normal(rng: np.random.Generator, apart: float) -> tuple[Any, Any]:
    """N(apart/2 e1, 1) against N(-apart/2 e1, 1): the ratio is linear."""
    d = int(rng.choice([4, 16, 64, 256]))

    def draw(domain: int, m: int) -> Doubles:
        x = rng.standard_normal((m, d))
        x[:, 0] += apart * (0.5 if domain == 1 else -0.5)
        return x

    return lambda x: apart * x[:, 0], draw


def unequal(rng: np.random.Generator, apart: float) -> tuple[Any, Any]:
    """Normal domains of unequal variances: the ratio is quadratic."""
    d = int(rng.choice([4, 16]))
    scale = np.exp(rng.uniform(-0.4, 0.4, d) * (rng.random(d) < 0.3))
    mean = np.zeros(d)
    mean[0] = apart

    def draw(domain: int, m: int) -> Doubles:
        x = rng.standard_normal((m, d))
        return mean + scale * x if domain == 1 else x

    return lambda x: (-0.5 * ((x - mean) / scale) ** 2 - np.log(scale) + 0.5 * x**2).sum(1), draw


def mixture(rng: np.random.Generator, apart: float) -> tuple[Any, Any]:
    """Seven overlapping components of which the domains have other shares: a bent ratio."""
    d, parts = int(rng.choice([16, 64])), 7
    centres = rng.standard_normal((parts, d)) * rng.uniform(0.3, 1.0)
    retain = rng.dirichlet(np.ones(parts))
    forget = retain * np.exp(apart * rng.standard_normal(parts))
    shares = {1: forget / forget.sum(), 2: retain}

    def draw(domain: int, m: int) -> Doubles:
        return centres[rng.choice(parts, m, p=shares[domain])] + rng.standard_normal((m, d))

    def ratio(x: Doubles) -> Doubles:
        near = x @ centres.T - 0.5 * (centres**2).sum(1)
        return np.asarray(
            logsumexp(near + np.log(shares[1]), axis=1)
            - logsumexp(near + np.log(shares[2]), axis=1)
        )

    return ratio, draw


def world(rng: np.random.Generator, most: int) -> World:
    """A random world of at most ``most`` texts."""
    n = min(int(np.exp(rng.uniform(np.log(200), np.log(20_000)))), most)
    n1 = min(max(int(rng.uniform(0.02, 0.6) * n), 20), n - 20)
    apart = float(np.sqrt(2) * norm.ppf(rng.uniform(0.5, 0.99)))
    family = [normal, normal, unequal, mixture][int(rng.integers(4))]
    ratio, draw = family(rng, apart)
    x = np.concatenate([draw(1, n1), draw(2, n - n1)])
    return World(x, np.arange(n) < n1, ratio, draw)


def null(rng: np.random.Generator, most: int) -> World:
    """Two domains that are one."""
    drawn = world(rng, most)
    x = drawn.draw(2, len(drawn.x))
    return World(x, drawn.forget, lambda x: np.zeros(len(x)), drawn.draw)


def pool_of(drawn: World) -> Pool:
    """The world as a selector sees it."""
    ids = np.array([f"{i:06d}" for i in range(len(drawn.x))], dtype=object)
    return Pool(ids, drawn.forget, drawn.x.astype(np.float16))


def scored(
    drawn: World, kind: str, rng: np.random.Generator
) -> tuple[RatioScores, list[Doubles], Callable[[Doubles], Doubles] | None]:
    """Scores with halves, the whole refits, and the score of fresh texts where it is known."""
    if kind == "true":
        scale, shift = np.exp(rng.uniform(-1.2, 1.2)), rng.normal()
        fold = stratified_folds(drawn.forget, 5, 0).astype(np.int64)
        offsets = rng.normal(size=5) * rng.choice([0.0, 0.3])
        score = scale * drawn.ratio(drawn.x) + shift + offsets[fold]
        return (
            RatioScores(score, drawn.forget, fold),
            [],
            lambda x: (scale * drawn.ratio(x) + shift)[:, None] + offsets,
        )
    pool, seed = pool_of(drawn), int(rng.integers(2**31))
    changes = MLP if kind == "mamushi" else {"alpha": 1e-3, "solver": "newton-cholesky"}
    settings = {**plugin("selector", kind).defaults, **changes}
    first = load("selector", kind).score(pool, settings, seed)
    refitted = make_refits(pool, kind, settings, seed, 2, 2)
    assert first.fold is not None
    fold = first.fold.astype(np.int64)
    whole = [fit.scores for part, _, fit in refitted if part == WHOLE_REFIT]
    fresh = None
    counts = np.bincount(fold)
    if kind != "mamushi" and counts.min() > drawn.x.shape[1] + 10:
        # A fold's scores are linear in the features, so they tell its weights.
        x = np.column_stack([drawn.x.astype(np.float16).astype(float), np.ones(len(drawn.x))])
        solved = [np.linalg.lstsq(x[fold == i], first.scores[fold == i])[0] for i in range(5)]
        weights = np.stack(solved, axis=1)
        fresh = lambda x: np.column_stack([x, np.ones(len(x))]) @ weights  # noqa: E731
    return RatioScores(first.scores, drawn.forget, fold, halves_of(refitted)), whole, fresh


def examined(task: tuple[int, int, str, bool]) -> dict[str, Any]:
    """All that is asked of one world, by its seed, number and kind of scores."""
    seed, number, kind, is_null = task
    rng = np.random.default_rng([seed, number, is_null])
    most = LARGEST_MLP if kind == "mamushi" else 20_000
    drawn = (null if is_null else world)(rng, most)
    with contextlib.redirect_stderr(io.StringIO()):
        scores, whole, fresh = scored(drawn, kind, rng)
    estimate = scores.estimate()
    judged = judge_scores(scores, whole, ratio_checks(scores, estimate, RESAMPLES, number))
    curve, ranks = expected(scores, judged.reason, number)
    values: dict[str, Any] = {
        "kind": kind,
        "null": is_null,
        "n": len(scores.forget),
        "auc": judged.auc,
        "low": judged.auc_low,
        "high": judged.auc_high,
        "reason": judged.reason,
    }
    if not is_null:
        truth = true_budgets(drawn, scores, ranks)
        for target, value in TARGETS:
            advised = predicted_budget([curve], target, value)
            values[target] = {**advised, "exact": truth[target]}
    if fresh is not None:
        values["bound_holds"] = bound_holds(drawn, scores, fresh)
    return values


def expected(
    scores: RatioScores, reason: str | None, number: int
) -> tuple[list[dict[str, Any]], RemovalOrder]:
    """What the frontier of the scores' own ranking tells the advisor, and that ranking; ``reason``
    is why it is to tell nothing."""
    forget, n1 = scores.forget, int(scores.forget.sum())
    rank = np.empty(n1)
    rank[np.argsort(-scores.score[forget], kind="stable")] = np.arange(1, n1 + 1)
    ranks = removal_order(scores.score[forget], rank, scores.score[~forget], by_chance=False)
    counts = np.round(BUDGETS * n1).astype(np.int64)
    band = bands(scores, {"own": ranks}, counts, RESAMPLES, number)["own"]
    curve = [
        {
            "beta": k / n1,
            "withheld": reason,
            **{
                f"{name}{end}": float(getattr(band[name], part)[i])
                for name in ("gain", "preservation")
                for end, part in (("", "value"), ("_low", "low"), ("_high", "high"))
            },
        }
        for i, k in enumerate(counts)
    ]
    return thinned(curve), ranks


def thinned(curve: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without budgets that a small forget set rounds to one."""
    return [row for i, row in enumerate(curve) if i == 0 or row["beta"] > curve[i - 1]["beta"]]


def true_budgets(drawn: World, scores: RatioScores, ranks: Any) -> dict[str, float | None]:
    """The budgets that the exact frontier of the ranking advises."""
    forget, n1 = scores.forget, int(scores.forget.sum())
    everywhere = np.concatenate([drawn.ratio(drawn.draw(domain, FRESH)) for domain in (1, 2)])
    exactly = drawn.ratio(drawn.x)
    truth = Truth(everywhere, np.arange(2 * FRESH) < FRESH, exactly[forget], exactly[~forget])
    counts = np.unique(np.round(FINE * n1).astype(np.int64))
    removed, preserved = exact(ranks, truth, counts)
    whole = removed[-1] - removed[0]
    share = (removed - removed[0]) / whole if whole > 1e-9 else np.full(len(counts), np.nan)
    rows = [
        {"beta": k / n1, "withheld": None}
        | {f"gain{end}": share[i] for end in ("", "_low", "_high")}
        | {f"preservation{end}": preserved[i] for end in ("", "_low", "_high")}
        for i, k in enumerate(counts)
    ]
    return {target: predicted_budget([rows], target, value)["budget"] for target, value in TARGETS}


def bound_holds(drawn: World, scores: RatioScores, fresh: Callable[[Doubles], Doubles]) -> bool:
    """Whether the bound on the retain share is above the true one at all budgets at once."""
    scores_ = fresh(drawn.draw(2, 5 * FRESH).astype(np.float16).astype(float))
    above = np.sort(scores_.ravel())
    falling = -np.sort(-scores.score[scores.forget])
    n1 = len(falling)
    for k in range(1, n1 + 1, max(1, n1 // 200)):
        true = 1 - np.searchsorted(above, falling[k - 1]) / len(above)
        _, bound = share_bound(scores.score[~scores.forget], falling[k - 1], k / n1)
        if bound < min(true / (k / n1), 1.0):
            return False
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=1000)
    parser.add_argument("--nulls", type=int, default=200)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    # Of ten worlds four have true scores, five a logistic regression's and one an MLP's.
    kinds = ["true", "mamushi_lr"] * 4 + ["mamushi_lr", "mamushi"]
    tasks = [(args.seed, i, kinds[i % 10], False) for i in range(args.worlds)]
    tasks += [(args.seed, i, "mamushi_lr", True) for i in range(args.nulls)]
    report = Report("worlds", threads=args.processes)
    rows = []
    with (
        ProcessPoolExecutor(args.processes) as workers,
        Progress(len(tasks), "worlds", "world") as progress,
    ):
        for row in workers.map(examined, tasks, chunksize=4):
            rows.append(row)
            progress.advance()
    summarize(report, rows)
    report.write()


def summarize(report: Report, rows: list[dict[str, Any]]) -> None:
    """The figures that the claims are held against."""
    worlds = [row for row in rows if not row["null"]]
    nulls = [row for row in rows if row["null"]]
    report.value("worlds", len(worlds))
    for target, _ in TARGETS:
        for kind in ("all", *sorted({row["kind"] for row in worlds})):
            ours = [row for row in worlds if kind in ("all", row["kind"])]
            advised = [
                row[target]
                for row in ours
                if row[target]["budget"] is not None and row[target]["exact"] is not None
            ]
            inside = [
                answer["budget_low"] <= answer["exact"] <= answer["budget_high"]
                for answer in advised
            ]
            width = [answer["budget_high"] - answer["budget_low"] for answer in advised]
            name = f"{target}_{kind}"
            report.value(f"{name}_given", f"{len(advised)} of {len(ours)}")
            if not advised:
                continue
            report.value(f"{name}_coverage", float(np.mean(inside)))
            report.value(f"{name}_median_width", float(np.median(width)))
    bounds = [row["bound_holds"] for row in rows if "bound_holds" in row]
    report.value("retain_share_bound_worlds", len(bounds))
    report.value("retain_share_bound_holds", float(np.mean(bounds)))
    if nulls:
        report.value("nulls", len(nulls))
        half = [row["low"] <= 0.5 <= row["high"] for row in nulls]
        report.value("null_auc_interval_holds_half", float(np.mean(half)))
        report.value("null_refused", float(np.mean([bool(row["reason"]) for row in nulls])))


if __name__ == "__main__":
    main()
