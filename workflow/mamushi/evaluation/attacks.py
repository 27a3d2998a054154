"""Membership inference: was a text among those that a model was trained on?

An attack gives every text a score that should be higher for members. How well it tells members from
texts that nobody was trained on is the area under its ROC curve and, since an attacker who is sure
of few members is worse than one who is vaguely right of all, the share of members that it finds
while it accuses 1% of the others (Carlini et al. 2022, Membership Inference Attacks From First
Principles).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t

Doubles = NDArray[np.float64]
Bools = NDArray[np.bool_]

ATTACKS = ("loss", "zlib", "min_k", "min_k_plus", "reference", "likelihood_ratio")
FALSE_POSITIVES = 0.01
"""Share of the others that an attack may accuse."""
FEWEST = 10
"""Texts of either kind below which nothing is estimated."""
FEWEST_OTHERS = round(1 / FALSE_POSITIVES)
"""Others below which the share of false positives is no whole text."""
FEWEST_SEEDS = 3
"""Of the likelihood ratio: the model's own, and two whose models say how much models differ."""
RESAMPLES = 200
CONFIDENCE = 0.975

Measure = Callable[[Doubles, Doubles, Doubles, Doubles], Doubles]
"""Of scores of members (m,) and others (n,) and weights of both (B, m) and (B, n): (B,)."""


# Scores -------------------------------------------------------------------------------------------


def simple_scores(
    statistics: Mapping[str, Doubles], base: Mapping[str, Doubles] | None
) -> dict[str, Doubles]:
    """The scores (n,) of the attacks on one model that need no other models but its base.

    ``statistics`` has ``nll`` (sum over predicted tokens, nats), ``tokens``, ``zlib`` (bytes),
    ``min_k`` and ``min_k_plus``, (n,) each. With l the mean log-likelihood per token: *loss* is l
    (Yeom et al. 2018), *zlib* l over the compressed text's bytes (Carlini et al. 2021), *min_k* and
    *min_k_plus* as they are (Shi et al. 2024, Zhang et al. 2024), *reference* l less that under the
    base model, without which there is none (the neighbourhood-free ratio of Carlini et al. 2021).
    """
    mean = per_token(statistics)
    found = {
        "loss": mean,
        "zlib": mean / statistics["zlib"],
        "min_k": statistics["min_k"],
        "min_k_plus": statistics["min_k_plus"],
    }
    if base is not None:
        found["reference"] = mean - per_token(base)
    return found


def per_token(statistics: Mapping[str, Doubles]) -> Doubles:
    """Mean log-likelihood per predicted token in nats, (n,)."""
    return -statistics["nll"] / statistics["tokens"]


def likelihood_ratio(target: Doubles, outside: Doubles, inside: Doubles, seen: Bools) -> Doubles:
    """log p(T | member) - log p(T | no member) of each text, (n,).

    T is the mean log-likelihood per token under the model in question: ``target`` (n,). The shadow
    models are those of k >= 2 other seeds: ``outside`` (k, n) never saw the forget texts (gold),
    ``inside`` (k, n) saw those that are ``seen`` (n,) (beta 0). Without memory of a text, T is
    normal about the mean of ``outside``, with the variance within texts that all texts share; with
    it, higher by the mean of what beta 0 is higher on what it has seen, with the variance of that.
    So few shadow models give no variance of each text's own (Carlini et al. 2022, section VI.C),
    and held-out texts, which nobody saw, could have no distribution of their own as members.
    """
    k = len(outside)
    about = target - outside.mean(axis=0)
    # Of a further model about the mean of k: its own variance, and the mean's.
    away = outside.var(axis=0, ddof=1).mean() * (1 + 1 / k)
    # Each beta 0 against the golds of the other seeds, as the model in question is.
    gains = np.concatenate(
        [(inside[i] - np.delete(outside, i, axis=0).mean(axis=0))[seen] for i in range(k)]
    )
    return _log_normal(about, gains.mean(), gains.var(ddof=1)) - _log_normal(about, 0.0, away)


def _log_normal(x: Doubles, mean: float, variance: float) -> Doubles:
    variance = max(variance, 1e-12)
    return np.asarray(-((x - mean) ** 2) / (2 * variance) - np.log(variance) / 2)


# Measures -----------------------------------------------------------------------------------------


def auc(members: Doubles, others: Doubles, wm: Doubles, wo: Doubles) -> Doubles:
    """P(a member's score > another's), ties counted half, (B,)."""
    above = (members[:, None] > others) + 0.5 * (members[:, None] == others)
    found: Doubles = ((wm @ above) * wo).sum(axis=1) / (_total(wm) * _total(wo))
    return found


def tpr(members: Doubles, others: Doubles, wm: Doubles, wo: Doubles) -> Doubles:
    """Share of members above the lowest score above which at most 1% of the others are, (B,)."""
    order = np.argsort(-others, kind="stable")
    reached = np.cumsum(wo[:, order], axis=1)
    allowed = FALSE_POSITIVES * reached[:, -1:] + 1e-9
    limit = others[order][(reached <= allowed).sum(axis=1)]
    found: Doubles = (wm * (members > limit[:, None])).sum(axis=1) / _total(wm)
    return found


def share(members: Doubles, others: Doubles, wm: Doubles, wo: Doubles) -> Doubles:
    """Mean of the members, (B,); for numbers that need no others."""
    del others, wo
    mean: Doubles = (wm * members).sum(axis=1) / _total(wm)
    return mean


def _total(weights: Doubles) -> Doubles:
    """Of whole weights (B, n) the sum (B,), and 1 where a resample has drawn none of the texts."""
    return np.maximum(weights.sum(axis=1), 1.0)


CHANCE: Mapping[Measure, float] = {auc: 0.5, tpr: FALSE_POSITIVES}
"""What an attack that knows nothing reaches."""


# Estimates ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scored:
    """One seed's texts: scores under the model and under its gold model, and who is what, (n,)."""

    model: Doubles
    gold: Doubles
    member: Bools
    other: Bools


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds with its 95% interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Compared:
    """A measure of a model, the same of gold, and how much higher it is than of gold."""

    model: Estimate
    gold: Estimate
    difference: Estimate


def compare(seeds: Sequence[Scored], measure: Measure) -> Compared:
    """A measure of models and of gold ones over S seeds, and the difference, paired by texts.

    All seeds have the same n texts, whose roles may differ. The variance has two parts: over texts,
    by a bootstrap that draws the same texts in all seeds and for both models, and of the mean over
    seeds; a t interval has the degrees of freedom of Welch and Satterthwaite. Of one seed it is
    over texts alone, and holds no error of training. A share that no text, or every text, moves
    away from its end has the exact binomial limit there (Clopper and Pearson 1934).
    """
    rng = np.random.default_rng(0)
    members = np.logical_or.reduce([one.member for one in seeds])
    others = np.logical_or.reduce([one.other for one in seeds])
    weights = np.ones((RESAMPLES + 1, len(members)))
    for rows in map(np.flatnonzero, (members, others)):
        for b in range(1, RESAMPLES + 1):
            drawn = rng.integers(len(rows), size=len(rows))
            weights[b, rows] = np.bincount(drawn, minlength=len(rows))
    both = np.array(
        [
            [
                measure(s[one.member], s[one.other], weights[:, one.member], weights[:, one.other])
                for s in (one.model, one.gold)
            ]
            for one in seeds
        ]
    )
    fewest = [min(n for n in (one.member.sum(), one.other.sum()) if n) for one in seeds]
    n = int(min(fewest))
    model, gold = both[:, 0], both[:, 1]
    return Compared(
        _estimate(model, n, (0.0, 1.0)),
        _estimate(gold, n, (0.0, 1.0)),
        _estimate(model - gold, n, (-1.0, 1.0)),
    )


def _estimate(found: Doubles, n: int, ends: tuple[float, float]) -> Estimate:
    """Of measures (S, 1 + B), those of the texts as they are first; shares between two ends."""
    by_seed, drawn = found[:, 0], found[:, 1:].mean(axis=0)
    value, seeds = float(by_seed.mean()), len(by_seed)
    parts = [(float(drawn.var(ddof=1)), n - 1)]
    if seeds > 1:
        parts.append((float(by_seed.var(ddof=1)) / seeds, seeds - 1))
    variance = sum(v for v, _ in parts)
    if variance == 0:
        exact = 1 - (1 - CONFIDENCE) ** (1 / n)
        low, high = (value - exact, value + exact)
    else:
        freedom = variance**2 / sum(v**2 / f for v, f in parts)
        half = float(t.ppf(CONFIDENCE, freedom) * np.sqrt(variance))
        low, high = value - half, value + half
    return Estimate(value, max(low, ends[0]), min(high, ends[1]))
