"""Bands of the frontier by a bootstrap over examples, and its values where the truth is known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mamushi.artifacts.domains import FORGET
from mamushi.evidence.calibration import SLACK, Estimate, Scores
from mamushi.evidence.frontier import (
    Array,
    Frontier,
    Ranking,
    accumulate,
    by_chance,
    gain,
    phi,
)
from mamushi.selection.metrics import NORMAL, Codes, clusters_of
from mamushi.selection.removals import count

LEVELS = (0.025, 0.975)
"""The ends of a 95% band."""
ENDS = (("", "value"), ("_low", "low"), ("_high", "high"))
"""How the names of a value and of its ends go on, and what they are of a ``Band``."""

Counts = NDArray[np.int64]
Pair = tuple[Array, Array]
"""Removal and preservation (B,)."""


@dataclass(frozen=True)
class Band:
    """Values at each budget (B,) with the ends of their pointwise bands; NaN where not defined."""

    value: Array
    low: Array
    high: Array


def bands(
    scores: Scores, rankings: Mapping[str, Ranking], counts: Counts, resamples: int, seed: int
) -> dict[str, dict[str, Band]]:
    """Return 95% bands of each ranking's frontier at ``counts`` (B,), from 0 to n1.

    By name: ``removal`` and ``preservation`` in nats, and ``gain`` (the share of the full
    removal's), of the ratio that ``scores`` estimate. All rankings are of these texts.

    A resample draws n1 forget and n2 retain examples with replacement, or their groups
    (``resample``), the same for all rankings;
    the ratio is calibrated anew with it, and one of the pairs of halves says what the scores have
    lost. Every resample is looked at without that loss, which halves can overstate, and with it and
    ``calibration.SLACK`` more, and a band spans the percentiles of both. ``gain`` is not defined
    where removing all gains nothing; a resample of which that is so counts as one that reaches no
    share, and an end of a band that rests on such resamples is NaN.
    """
    rng = np.random.default_rng(seed)
    one, two = scores.forget, ~scores.forget
    estimate = scores.estimate()
    drawn: dict[str, dict[str, list[Pair]]] = {
        name: {side: [] for side in ("near", *SLACK)} for name in rankings
    }

    def frontiers(found: Estimate, lost: float) -> Iterator[tuple[str, Frontier]]:
        some = next(iter(rankings.values()))
        at = Frontier(some, found.log_ratio[one], found.log_ratio[two], scores.pi1, lost)
        for name, ranks in rankings.items():
            yield name, at.reranked(ranks)

    for which in range(resamples):
        weights = resample(one, rng, scores.groups)
        found = scores.resampled(weights, which)
        lost = {side: found.lost + slack * found.jeffreys for side, slack in SLACK.items()}
        for side, spread in {"near": 0.0, **lost}.items():
            for name, at in frontiers(found, spread):
                drawn[name][side].append(at.at(counts, weights[one], weights[two]))
    wider = few_groups(one, scores.groups)
    return {
        name: _summaries(at.at(counts), drawn[name], wider)
        for name, at in frontiers(estimate, estimate.lost)
    }


def resample(
    forget: NDArray[np.bool_], rng: np.random.Generator, groups: Codes | None = None
) -> NDArray[np.float64]:
    """Draw as many examples of each domain with replacement: how often each is drawn, (n,).

    Of ``groups`` (n,) whole ones are drawn, as many as there are in the forget domain alone, in the
    retain domain alone, and in both: one that spans both is drawn as one. Then a domain's examples
    weigh as many as it has.
    """
    weights = np.empty(len(forget))
    if clusters_of(groups, forget) is None or groups is None:
        for domain in (forget, ~forget):
            n = int(domain.sum())
            weights[domain] = np.bincount(rng.integers(n, size=n), minlength=n)
        return weights
    _, code = np.unique(groups, return_inverse=True)
    times = np.zeros(int(code.max()) + 1)
    inside = [np.isin(np.arange(len(times)), code[domain]) for domain in (forget, ~forget)]
    for one, two in ((True, False), (False, True), (True, True)):
        drawn = np.flatnonzero((inside[0] == one) & (inside[1] == two))
        if n := len(drawn):
            times[drawn] = np.bincount(rng.integers(n, size=n), minlength=n)
    weights = times[code]
    for domain in (forget, ~forget):
        weights[domain] *= domain.sum() / weights[domain].sum()
    return weights


def few_groups(forget: NDArray[np.bool_], groups: Codes | None) -> float:
    """Return by how much an interval over resamples of m groups is too narrow: sqrt(m / (m - 1))
    times Student's over the normal quantile, m those of the domain that has fewer; 1 without."""
    from scipy.special import stdtrit

    clusters = clusters_of(groups, forget)
    if clusters is None:
        return 1.0
    fewest = max(min(len(np.unique(own)) for own in clusters), 2)
    return float(np.sqrt(fewest / (fewest - 1)) * stdtrit(fewest - 1, LEVELS[1])) / NORMAL


def _summaries(point: Pair, drawn: Mapping[str, list[Pair]], wider: float) -> dict[str, Band]:
    sides = {
        side: _quantities(*(np.array(column) for column in zip(*pairs, strict=True)))
        for side, pairs in drawn.items()
    }
    found = {}
    for name, value in _quantities(*point).items():
        far = "preservation" if name == "preservation" else "removal"
        ends = np.array([_ends(sides[side][name]) for side in ("near", far)])
        low = np.minimum(value, ends[:, 0].min(axis=0))
        high = np.maximum(value, ends[:, 1].max(axis=0))
        if wider > 1:
            low, high = value - wider * (value - low), value + wider * (high - value)
        found[name] = Band(value, low, high)
    return found


def _ends(spread: Array) -> Array:
    """Return quantiles at ``LEVELS`` over the resamples of ``spread`` (R, B), NaN if infinite. A
    resample in which removing all gains nothing is NaN there, and reaches no share."""
    known = np.where(np.isnan(spread), -np.inf, spread)
    with np.errstate(invalid="ignore"):
        ends = np.quantile(known, LEVELS, axis=0)
    return np.where(np.isfinite(ends), ends, np.nan)


def _quantities(removed: Array, preserved: Array) -> dict[str, Array]:
    return {"removal": removed, "preservation": preserved, "gain": gain(removed)}


@dataclass(frozen=True)
class Truth:
    """The exact log-density ratios of a dataset whose densities are known.

    ``everywhere`` (N,) are those of all its texts, of any section, and ``forget`` (N,) is true for
    a text of p1. ``l1`` (n1,) and ``l2`` (n2,) belong to the sample that a selector ranks.
    """

    everywhere: Array
    forget: NDArray[np.bool_]
    l1: Array
    l2: Array

    def means(self, values: Array) -> tuple[float, float]:
        """Return E_p1 and E_p2 of a function, from its ``values`` (N,) at every text."""
        n1 = int(self.forget.sum())
        one, two = balanced(self.everywhere, n1, len(self.forget) - n1)
        return float(one @ values), float(two @ values)


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


def balanced(ratio: Array, n1: int, n2: int) -> tuple[Array, Array]:
    """Return weights (n,) for E_p1 and for E_p2 over a sample of n1 texts of p1 and n2 of p2.

    The balance heuristic (Veach and Guibas, 1995), p_i / (n1 p1 + n2 p2), normalized: texts of both
    domains serve both expectations, so that no rare text of great weight decides a mean. ``ratio``
    (n,) is the exact log p1/p2 of each.
    """
    odds = ratio + np.log(n1) - np.log(n2)
    one, two = np.exp(-np.logaddexp(0, -odds)), np.exp(-np.logaddexp(0, odds))
    return one / one.sum(), two / two.sum()


def exact(ranks: Ranking, truth: Truth, counts: Counts) -> tuple[Array, Array]:
    """Return KL(p1 || p_-S) and KL(p2 || p_-S) in nats (B,) at the exact log ratios:

        KL(p_i || p_-S) = KL(p_i || p_-{}) + log Z_b + E_pi[phi(l)] share_i(S)

    (Lemma "decomposition"), where the two expectations depend on no selector and come from all
    texts of the dataset, and ``shares`` are the selector's, from the texts that it ranks. A
    divergence that comes out below 0 is 0.
    """
    n1, n2 = len(truth.l1), len(truth.l2)
    pi1, budget = n1 / (n1 + n2), counts / n1
    level = np.log1p(-pi1 * budget)
    if ranks.by_chance:
        one, two = by_chance(truth.everywhere, truth.everywhere, pi1, budget)
        removed = level - [truth.means(values)[0] for values in one]
        preserved = level - [truth.means(values)[1] for values in two]
    else:
        captured = phi(truth.everywhere, pi1)
        total1, total2 = truth.means(captured)
        # log( pi1 + pi2 e^-l ) = phi(l) + log pi2 - l, and without the l for the other domain.
        pi2 = np.log1p(-pi1)
        whole1, whole2 = truth.means(captured - truth.everywhere)[0] + pi2, total2 + pi2
        share1, share2 = shares(ranks, truth, counts)
        removed, preserved = level - whole1 + total1 * share1, level - whole2 + total2 * share2
    return np.maximum(removed, 0.0), np.maximum(preserved, 0.0)


def shares(ranks: Ranking, truth: Truth, counts: Counts) -> tuple[Array, Array]:
    """Return E_pi[1_S phi(l)] / E_pi[phi(l)] at each count (B,), in p1 and in p2: from 0 to 1.

    A selector that scores both domains is measured on the texts of both with the weights of
    ``balanced``, S being the top by score of p1-mass b: the same texts serve both shares, so that
    Proposition "optimal selection" holds of them exactly. One that ranks forget examples alone is
    measured by those, p2 = p1 e^-l.
    """
    n1, n2 = len(truth.l1), len(truth.l2)
    sample = Frontier(ranks, truth.l1, truth.l2, n1 / (n1 + n2))
    if ranks.region is None:
        one, two = accumulate(sample.gain), accumulate(sample.loss)
        return one[counts] / one[-1], two[counts] / two[-1]
    score = np.concatenate([ranks.region.score1, ranks.region.score2])
    ratio = np.concatenate([truth.l1[ranks.first], truth.l2[ranks.region.order]])
    order = np.argsort(-score, kind="stable")
    # What ties goes together, a share of it where the budget ends within.
    ends = np.concatenate([[True], np.diff(score[order]) != 0, [True]])
    w1, w2 = (weights[order] for weights in balanced(ratio, n1, n2))
    captured = phi(ratio, sample.pi1)[order]
    mass, one, two = (accumulate(v)[ends] for v in (w1, w1 * captured, w2 * captured))
    b = counts / n1
    return np.interp(b, mass, one) / one[-1], np.interp(b, mass, two) / two[-1]


def frontier(
    scores: Scores,
    rankings: Mapping[str, Ranking],
    budgets: Iterable[float],
    resamples: int,
    seed: int,
    truth: Truth | None = None,
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the rows of the table ``frontier`` but for the cell, 0 and 1 among the budgets.

    Beside them, by ranking, the gain, by which the advisor goes: its bands do not follow from those
    of the curve.
    """
    betas = sorted({0.0, 1.0, *map(float, budgets)})
    counts = np.array([count(beta, int(scores.forget.sum())) for beta in betas])
    found = bands(scores, rankings, counts, resamples, seed)
    table = []
    for name, ranks in rankings.items():
        exactly = None if truth is None else exact(ranks, truth, counts)
        along = zip(betas, counts, rows(found[name], exactly, len(counts)), strict=True)
        table += [{"selector": name, "beta": b, "removed": int(k), **row} for b, k, row in along]
    relative = {
        name: {f"gain{end}": _listed(getattr(one["gain"], part)) for end, part in ENDS}
        for name, one in found.items()
    }
    return table, relative


def _listed(values: Array) -> list[float | None]:
    return [None if value != value else float(value) for value in values]


def rows(
    found: Mapping[str, Band], exactly: tuple[Array, Array] | None, budgets: int
) -> list[dict[str, Any]]:
    """Return the numbers of the table ``frontier``, a row per budget."""
    return [
        {
            **{
                f"{name}{end}": float(getattr(found[name], part)[i])
                for name in ("removal", "preservation")
                for end, part in ENDS
            },
            "exact_removal": None if exactly is None else float(exactly[0][i]),
            "exact_preservation": None if exactly is None else float(exactly[1][i]),
        }
        for i in range(budgets)
    ]
