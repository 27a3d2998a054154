"""Bands of the frontier by a bootstrap over examples."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mamushi.data.groups import GroupCodes
from mamushi.evidence.calibration import LOSS_SLACK, RatioEstimate, RatioScores
from mamushi.evidence.frontier import Array, Frontier, Places, RemovalOrder, gain
from mamushi.selection.metrics import NORMAL, clusters_of
from mamushi.selection.removals import budget_size

LEVELS = (0.025, 0.975)
"""The ends of a 95% band."""
_ENDS = ("", "_low", "_high")
"""How the names of a value and of its ends go on, in the order of a ``Band``."""

Pair = tuple[Array, Array]
"""Removal and preservation (B,)."""


class Band(NamedTuple):
    """Values at each budget (B,) with the ends of their pointwise bands; NaN where not defined."""

    value: Array
    low: Array
    high: Array


def bands(
    scores: RatioScores,
    rankings: Mapping[str, RemovalOrder],
    counts: Places,
    resamples: int,
    seed: int,
) -> dict[str, dict[str, Band]]:
    """Return 95% bands of each ranking's frontier at ``counts`` (B,), from 0 to n1: by name
    ``removal`` and ``preservation`` in nats, and ``gain`` (the share of the full removal's), of the
    ratio that ``scores`` estimate. All rankings are of these texts.

    A resample draws n1 forget and n2 retain examples with replacement, or their groups
    (``resample``), the same for all rankings. The ratio is calibrated anew with it, and one of the
    pairs of halves says what the scores have lost. Each resample is evaluated without that loss,
    which halves can overstate, and with the loss and ``calibration.LOSS_SLACK`` more; a band spans
    the percentiles of both. Where removing all gains nothing, ``gain`` is not defined, and a
    resample reaches no share; an end of a band that rests on such resamples is NaN.
    """
    rng, forget = np.random.default_rng(seed), scores.forget
    drawn: dict[str, dict[str, list[Pair]]] = {name: defaultdict(list) for name in rankings}

    def frontiers(ratio: RatioEstimate, lost: float) -> Iterator[tuple[str, Frontier]]:
        l1, l2 = ratio.log_ratio[forget], ratio.log_ratio[~forget]
        at = Frontier(next(iter(rankings.values())), l1, l2, scores.pi1, lost)
        return ((name, at.reranked(ranks)) for name, ranks in rankings.items())

    for which in range(resamples):
        weights = resample(forget, rng, scores.groups)
        redrawn = scores.resampled(weights, which)
        lost = {side: redrawn.lost + slack * redrawn.jeffreys for side, slack in LOSS_SLACK.items()}
        for side, spread in {"near": 0.0, **lost}.items():
            for name, at in frontiers(redrawn, spread):
                drawn[name][side].append(at.at(counts, weights[forget], weights[~forget]))
    estimate, wider = scores.estimate(), few_groups(forget, scores.groups)
    return {
        name: _bands(at.at(counts), drawn[name], wider)
        for name, at in frontiers(estimate, estimate.lost)
    }


def resample(
    forget: NDArray[np.bool_], rng: np.random.Generator, groups: GroupCodes | None = None
) -> NDArray[np.float64]:
    """Draw as many examples of each domain with replacement: how often each is drawn, (n,).

    Of ``groups`` (n,) whole ones are drawn, as many as there are in one domain alone and in both.
    Then a domain's examples weigh as many as it has.
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
    for in_forget, in_retain in ((True, False), (False, True), (True, True)):
        drawn = np.flatnonzero((inside[0] == in_forget) & (inside[1] == in_retain))
        if n := len(drawn):
            times[drawn] = np.bincount(rng.integers(n, size=n), minlength=n)
    weights = times[code]
    for domain in (forget, ~forget):
        weights[domain] *= domain.sum() / weights[domain].sum()
    return weights


def few_groups(forget: NDArray[np.bool_], groups: GroupCodes | None) -> float:
    """Return the factor by which an interval over resamples of groups is too narrow: sqrt(m / (m -
    1)) times Student's over the normal quantile, of m groups in the domain with fewer; else 1."""
    from scipy.special import stdtrit

    clusters = clusters_of(groups, forget)
    if clusters is None:
        return 1.0
    fewest = max(min(len(np.unique(codes)) for codes in clusters), 2)
    return float(np.sqrt(fewest / (fewest - 1)) * stdtrit(fewest - 1, LEVELS[1])) / NORMAL


def _bands(point: Pair, drawn: Mapping[str, list[Pair]], wider: float) -> dict[str, Band]:
    sides = {
        side: _quantities(*(np.array(column) for column in zip(*pairs, strict=True)))
        for side, pairs in drawn.items()
    }
    by_quantity = {}
    for name, value in _quantities(*point).items():
        far = "preservation" if name == "preservation" else "removal"
        ends = np.array([_ends(sides[side][name]) for side in ("near", far)])
        low = np.minimum(value, ends[:, 0].min(axis=0))
        high = np.maximum(value, ends[:, 1].max(axis=0))
        if wider > 1:
            low, high = value - wider * (value - low), value + wider * (high - value)
        by_quantity[name] = Band(value, low, high)
    return by_quantity


def _ends(spread: Array) -> Array:
    """Return quantiles at ``LEVELS`` over the resamples of ``spread`` (R, B), NaN if infinite. A
    resample in which removing all gains nothing is NaN there, and reaches no share."""
    comparable = np.where(np.isnan(spread), -np.inf, spread)
    with np.errstate(invalid="ignore"):
        ends = np.quantile(comparable, LEVELS, axis=0)
    return np.where(np.isfinite(ends), ends, np.nan)


def _quantities(removed: Array, preserved: Array) -> dict[str, Array]:
    return {"removal": removed, "preservation": preserved, "gain": gain(removed)}


def frontier_with_gain(
    scores: RatioScores,
    rankings: Mapping[str, RemovalOrder],
    budgets: Iterable[float],
    resamples: int,
    seed: int,
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the rows of the table ``frontier`` but for the cell, 0 and 1 among the budgets, and by
    ranking the gain, by which the advisor goes: its bands do not follow from those of the curve."""
    betas = sorted({0.0, 1.0, *map(float, budgets)})
    counts = np.array([budget_size(beta, int(scores.forget.sum())) for beta in betas])
    rows, relative = [], {}
    for ranking, by_quantity in bands(scores, rankings, counts, resamples, seed).items():
        columns = {
            name + end: values.tolist()
            for name, band in by_quantity.items()
            for end, values in zip(_ENDS, band, strict=True)
        }
        gains = {f"gain{end}": columns.pop(f"gain{end}") for end in _ENDS}
        relative[ranking] = {
            name: [None if np.isnan(x) else x for x in values] for name, values in gains.items()
        }
        columns |= {"selector": [ranking] * len(betas), "beta": betas, "removed": counts.tolist()}
        rows += [
            dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
        ]
    return rows, relative
