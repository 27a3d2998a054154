"""Membership inference: was a text among those that a model was trained on?

An attack scores every text, members higher. It is measured by its AUC, and by the share of members
that it finds while it accuses 1% of the others (Carlini et al. 2022).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mamushi.evaluation.crossed import Effect, Parts, effect_of
from mamushi.evaluation.paired import UPPER, half_width, variance_and_errors
from mamushi.evaluation.sad import Floats
from mamushi.selection.metrics import auc_ends

Bools = NDArray[np.bool_]

ATTACKS = ("loss", "reference", "likelihood_ratio")
FALSE_POSITIVES = 0.01
FEWEST_TEXTS = 10  # Texts of either kind below which nothing is estimated.
FEWEST_OTHERS = round(1 / FALSE_POSITIVES)
FEWEST_SEEDS = 3  # For a likelihood ratio: the model's own, and two of shadow models.
RESAMPLES = 200
ONE_SEED = "one seed does not know how far another is"

# From scores of members (m,) and others (n,) and weights of both (B, m), (B, n) to (B,).
Measure = Callable[[Floats, Floats, Floats, Floats], Floats]


def simple_scores(
    statistics: Mapping[str, Floats], base: Mapping[str, Floats] | None
) -> dict[str, Floats]:
    """Return the scores (n,) of the attacks on a model that need no other model but its base.

    ``statistics`` has ``nll`` (sum over predicted tokens, nats) and ``tokens``, (n,) each. With l
    the mean log-likelihood per token: *loss* is l (Yeom et al. 2018), *reference* l less that under
    the base model, if there is one (the ratio of Carlini et al. 2021).
    """
    mean = per_token(statistics)
    scores = {"loss": mean}
    if base is not None:
        scores["reference"] = mean - per_token(base)
    return scores


def per_token(statistics: Mapping[str, Floats]) -> Floats:
    """Return the mean log-likelihood per predicted token in nats, (n,)."""
    return -statistics["nll"] / statistics["tokens"]


def likelihood_ratio(target: Floats, outside: Floats, inside: Floats, seen: Bools) -> Floats:
    """Return log p(T | member) - log p(T | no member) of each text, (n,).

    T is the mean log-likelihood per token, ``target`` (n,) under the model in question. Of k >= 2
    other seeds, ``outside`` (k, n) never saw the forget texts (gold), ``inside`` saw those that are
    ``seen`` (n,) (beta 0). Without memory of a text, T is normal about the mean of ``outside``;
    with it, higher by beta 0's mean gain. All texts share the variances (Carlini et al. 2022).
    """
    k = len(outside)
    excess = target - outside.mean(axis=0)
    # Of a further model about the mean of k: its own variance, and the mean's.
    away = outside.var(axis=0, ddof=1).mean() * (1 + 1 / k)
    # Each beta 0 against the golds of the other seeds, as the model in question is.
    gains = np.concatenate(
        [(inside[i] - np.delete(outside, i, axis=0).mean(axis=0))[seen] for i in range(k)]
    )
    return _log_normal(excess, gains.mean(), gains.var(ddof=1)) - _log_normal(excess, 0.0, away)


def _log_normal(x: Floats, mean: float, variance: float) -> Floats:
    variance = max(variance, 1e-12)
    return np.asarray(-((x - mean) ** 2) / (2 * variance) - np.log(variance) / 2)


def attack_auc(members: Floats, outsiders: Floats, wm: Floats, wo: Floats) -> Floats:
    """Return P(a member's score > another's), ties counted half, (B,)."""
    above = (members[:, None] > outsiders) + 0.5 * (members[:, None] == outsiders)
    areas: Floats = ((wm @ above) * wo).sum(axis=1) / (_total(wm) * _total(wo))
    return areas


def tpr(members: Floats, outsiders: Floats, wm: Floats, wo: Floats) -> Floats:
    """Return the share of members above the lowest score that at most 1% of the others exceed."""
    order = np.argsort(-outsiders, kind="stable")
    reached = np.cumsum(wo[:, order], axis=1)
    allowed = FALSE_POSITIVES * reached[:, -1:] + 1e-9
    limit = outsiders[order][(reached <= allowed).sum(axis=1)]
    rates: Floats = (wm * (members > limit[:, None])).sum(axis=1) / _total(wm)
    return rates


def _total(weights: Floats) -> Floats:
    """Sum weights (B, n) over texts; 1 where a resample has drawn none."""
    return np.maximum(weights.sum(axis=1), 1.0)


CHANCE: Mapping[Measure, float] = {attack_auc: 0.5, tpr: FALSE_POSITIVES}


@dataclass(frozen=True)
class AttackedSeed:
    """One seed's texts: scores under the model and its gold model, which are which, and scores
    under the model that it was before, if any, (n,)."""

    model: Floats
    gold: Floats
    member: Bools
    outsider: Bools
    start: Floats | None = None


@dataclass(frozen=True)
class AttackEstimate:
    """A mean over seeds with its 95% interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class ComparedToGold:
    """A measure of a model, the same of gold, and the first less the second; where there is a start
    its measure, and which share of the way from there to gold the model has gone."""

    model: AttackEstimate
    gold: AttackEstimate
    difference: AttackEstimate
    start: float | None = None
    share: Effect | None = None


def compare(seeds: Sequence[AttackedSeed], measure: Measure) -> ComparedToGold:
    """Estimate a measure of models and of gold ones over S seeds, and the difference.

    The variance has two parts: over texts, by a bootstrap that draws the same texts in all seeds
    and for both models, and of the mean over seeds. Of one seed it holds no error of training. A
    share of none or all has the exact binomial limit (Clopper and Pearson 1934), an AUC the
    interval of ``auc_ends``, and the difference of two that of Zou and Donner (2008). A share of
    the way to gold has Fieller's, of the same two parts.
    """
    rng = np.random.default_rng(0)
    members = np.logical_or.reduce([seed.member for seed in seeds])
    outsiders = np.logical_or.reduce([seed.outsider for seed in seeds])
    weights = np.ones((RESAMPLES + 1, len(members)))
    for rows in map(np.flatnonzero, (members, outsiders)):
        for b in range(1, RESAMPLES + 1):
            drawn = rng.integers(len(rows), size=len(rows))
            weights[b, rows] = np.bincount(drawn, minlength=len(rows))
    measures = np.array(
        [
            [
                measure(
                    s[seed.member],
                    s[seed.outsider],
                    weights[:, seed.member],
                    weights[:, seed.outsider],
                )
                for s in (seed.model, seed.gold, seed.start)
                if s is not None
            ]
            for seed in seeds
        ]
    )
    n = int(min(count for seed in seeds for count in (seed.member.sum(), seed.outsider.sum())))
    model, gold, *start = measures.swapaxes(0, 1)
    if measure is attack_auc:
        compared = _compare_aucs(model, gold, n)
    else:
        difference = _estimate(model - gold, n, -1.0)
        compared = ComparedToGold(_estimate(model, n, 0.0), _estimate(gold, n, 0.0), difference)
    if not start:
        return compared
    before = start[0]
    share = _share(before - model, before - gold, n)
    return replace(compared, start=float(before[:, 0].mean()), share=share)


def _share(gone: Floats, whole: Floats, n: int) -> Effect:
    """Return which share of the ``whole`` way to gold is ``gone``, both (S, 1 + B); of one seed
    without an interval."""
    both, seeds = np.array([gone, whole]), len(gone)
    none = np.zeros((2, 2))
    of_seeds = np.cov(both[:, :, 0]) / seeds if seeds > 1 else none
    of_texts = np.cov(both[:, :, 1:].mean(axis=1))
    parts = Parts(of_seeds, of_texts, none, seeds - 1.0, n - 1.0)
    share = effect_of(parts, both[:, :, 0].mean(axis=1), seeds)
    if seeds > 1 or share.reason:
        return share
    # What texts alone leave open held the truth in 0.82 of draws.
    return Effect(share.estimate, reason=ONE_SEED)


def _compare_aucs(model: Floats, gold: Floats, n: int) -> ComparedToGold:
    """Compare AUCs (S, 1 + B). An error of the difference is made of those of both, each towards
    where the difference moves, and of their correlation over resamples and seeds."""
    first, second = (_estimate_auc(measures, n) for measures in (model, gold))
    covariance = np.cov(*(measures[:, 1:].mean(axis=0) for measures in (model, gold)))
    if len(model) > 1:
        covariance += np.cov(model[:, 0], gold[:, 0]) / len(model)
    size = np.sqrt(covariance[0, 0] * covariance[1, 1])
    alike = covariance[0, 1] / size if size > 0 else 0.0
    value = first.value - second.value
    lower, upper = (
        np.sqrt(max(a**2 + b**2 - 2 * alike * a * b, 0.0))
        for a, b in (
            (first.value - first.low, second.high - second.value),
            (first.high - first.value, second.value - second.low),
        )
    )
    return ComparedToGold(
        first, second, AttackEstimate(value, max(value - lower, -1.0), min(value + upper, 1.0))
    )


def _estimate_auc(measures: Floats, n: int) -> AttackEstimate:
    by_seed, resampled = measures[:, 0], measures[:, 1:].mean(axis=0)
    value = float(by_seed.mean())
    spread = variance_and_errors(by_seed, float(resampled.var(ddof=1)), n - 1)
    return AttackEstimate(value, *auc_ends(value, spread[0], n, spread[1]))


def _estimate(measures: Floats, n: int, least: float) -> AttackEstimate:
    """Estimate from measures (S, 1 + B), of the texts as they are first; from ``least`` to 1."""
    by_seed, resampled = measures[:, 0], measures[:, 1:].mean(axis=0)
    value = float(by_seed.mean())
    half = half_width(by_seed, float(resampled.var(ddof=1)), n - 1)
    half = half or 1 - (1 - UPPER) ** (1 / n)
    return AttackEstimate(value, max(value - half, least), min(value + half, 1.0))
