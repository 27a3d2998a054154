"""Membership inference: was a text among those that a model was trained on?

An attack scores every text, members higher. It is measured by its AUC, and by the share of members
that it finds while it accuses 1% of the others (Carlini et al. 2022).
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mamushi.evaluation.crossed import Effect, Parts, effect_of
from mamushi.evaluation.paired import UPPER, variance_and_errors
from mamushi.evaluation.sad import Floats
from mamushi.selection.metrics import auc_ends

Bools = NDArray[np.bool_]

FALSE_POSITIVES = 0.01
RESAMPLES = 200
ONE_SEED = "one seed does not know how far another is"

# From scores of members (m,) and others (n,) and weights of both (B, m), (B, n) to (B,).
Measure = Callable[[Floats, Floats, Floats, Floats], Floats]


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


class Estimate(NamedTuple):
    """A mean over seeds with its 95% interval."""

    value: float
    low: float
    high: float


class ComparedToGold(NamedTuple):
    """A measure of a model, the same of gold, and the first less the second; where there is a start
    its measure, and which share of the way from there to gold the model has gone."""

    model: Estimate
    gold: Estimate
    difference: Estimate
    start: float | None = None
    share: Effect | None = None


def compare(
    model: Floats,
    gold: Floats,
    start: Floats | None,
    member: Bools,
    outsider: Bools,
    measure: Measure,
) -> ComparedToGold:
    """Compare a measure of models, from their scores (S, n) of n texts under S seeds, with that of
    ``gold`` ones, and of those that they were before, if any. ``member`` (S, n) are the texts that
    are looked for by seed, and ``outsider`` (n,) the others.

    The variance has two parts: over texts, by a bootstrap that draws the same texts in all seeds
    and for both models, and of the mean over seeds. Of one seed it holds no error of training. A
    share of none or all has the exact binomial limit (Clopper and Pearson 1934), an AUC the
    interval of ``auc_ends``, and the difference of two that of Zou and Donner (2008). A share of
    the way to gold has Fieller's, of the same two parts.
    """
    rng = np.random.default_rng(0)
    weights = np.ones((RESAMPLES + 1, len(outsider)))
    for rows in map(np.flatnonzero, (member.any(axis=0), outsider)):
        for b in range(1, RESAMPLES + 1):
            drawn = rng.integers(len(rows), size=len(rows))
            weights[b, rows] = np.bincount(drawn, minlength=len(rows))

    def measures(scores: Floats) -> Floats:
        """Return the measure of each seed, of the texts as they are and of resamples (S, 1 + B)."""
        pairs = zip(scores, member, strict=True)
        return np.array(
            [measure(x[m], x[outsider], weights[:, m], weights[:, outsider]) for x, m in pairs]
        )

    n = int(min(*member.sum(axis=1), outsider.sum()))
    ours, theirs = measures(model), measures(gold)
    if measure is attack_auc:
        estimates = _compare_aucs(ours, theirs, n)
    else:
        estimates = _rate(ours, n, 0.0), _rate(theirs, n, 0.0), _rate(ours - theirs, n, -1.0)
    if start is None:
        return ComparedToGold(*estimates)
    before = measures(start)
    share = _share(before - ours, before - theirs, n)
    return ComparedToGold(*estimates, float(before[:, 0].mean()), share)


def _share(gone: Floats, whole: Floats, n: int) -> Effect:
    """Return which share of the ``whole`` way to gold is ``gone``, both (S, 1 + B); of one seed
    without an interval."""
    both, seeds, none = np.array([gone, whole]), len(gone), np.zeros((2, 2))
    of_seeds = np.cov(both[:, :, 0]) / seeds if seeds > 1 else none
    of_texts = np.cov(both[:, :, 1:].mean(axis=1))
    parts = Parts(of_seeds, of_texts, none, seeds - 1.0, n - 1.0)
    share = effect_of(parts, both[:, :, 0].mean(axis=1), seeds)
    # What texts alone leave open held the truth in 0.82 of draws.
    return share if seeds > 1 or share.reason else Effect(share.estimate, reason=ONE_SEED)


def _compare_aucs(model: Floats, gold: Floats, n: int) -> tuple[Estimate, Estimate, Estimate]:
    """Compare AUCs (S, 1 + B). An error of the difference is made of those of both, each towards
    where the difference moves, and of their correlation over resamples and seeds."""
    first, second = (_auc(measures, n) for measures in (model, gold))
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
    return first, second, Estimate(value, max(value - lower, -1.0), min(value + upper, 1.0))


def _auc(measures: Floats, n: int) -> Estimate:
    """Estimate an AUC from those (S, 1 + B) of the texts as they are and of resamples."""
    value, variance, errors = _spread(measures, n)
    return Estimate(value, *auc_ends(value, variance, n, errors))


def _rate(measures: Floats, n: int, least: float) -> Estimate:
    """Estimate a rate, or a difference of two, from ``least`` to 1, as ``_auc``."""
    value, variance, errors = _spread(measures, n)
    half = errors * float(np.sqrt(variance)) if variance else 1 - (1 - UPPER) ** (1 / n)
    return Estimate(value, max(value - half, least), min(value + half, 1.0))


def _spread(measures: Floats, n: int) -> tuple[float, float, float]:
    """Return the mean over seeds, its variance, and the errors to an end of its interval."""
    by_seed, resampled = measures[:, 0], measures[:, 1:].mean(axis=0)
    return float(by_seed.mean()), *variance_and_errors(by_seed, float(resampled.var(ddof=1)), n - 1)
