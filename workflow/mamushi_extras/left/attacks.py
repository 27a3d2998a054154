"""Membership inference: was a text among those that a model was trained on?

An attack scores every text, members higher. It is measured by its AUC, and by the share of members
that it finds while it accuses 1% of the others (Carlini et al. 2022).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mamushi.evaluation.paired import UPPER, variance_and_errors
from mamushi.evaluation.sad import Floats
from mamushi.selection.metrics import auc_ends

Bools = NDArray[np.bool_]

FALSE_POSITIVES = 0.01
RESAMPLES = 200

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


class Estimate(NamedTuple):
    """A mean over seeds with its 95% interval."""

    value: float
    low: float
    high: float


class ComparedToGold(NamedTuple):
    """A measure of a model, the same of gold, and the first less the second."""

    model: Estimate
    gold: Estimate
    difference: Estimate


def compare(
    model: Floats, gold: Floats, member: Bools, outsider: Bools, measure: Measure
) -> ComparedToGold:
    """Compare a measure of models, from their scores (S, n) of n texts under S seeds, with that of
    ``gold`` ones. ``member`` (S, n) are the texts that are looked for by seed, and ``outsider``
    (n,) the others.

    The variance has two parts: over texts, by a bootstrap that draws the same texts in all seeds
    and for both models, and of the mean over seeds. Of one seed it holds no error of training. An
    AUC has the interval of ``auc_ends``; a share, or a difference, without any variance the exact
    binomial limit (Clopper and Pearson 1934).
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

    def estimate(values: Floats, least: float, is_auc: bool) -> Estimate:
        """Estimate the mean of a measure, or of a difference, from ``least`` to 1."""
        by_seed, resampled = values[:, 0], values[:, 1:].mean(axis=0)
        value, of_texts = float(by_seed.mean()), float(resampled.var(ddof=1))
        variance, errors = variance_and_errors(by_seed, of_texts, n - 1)
        if is_auc:
            return Estimate(value, *auc_ends(value, variance, n, errors))
        half = errors * float(np.sqrt(variance)) if variance else 1 - (1 - UPPER) ** (1 / n)
        return Estimate(value, max(value - half, least), min(value + half, 1.0))

    ours, theirs, is_auc = measures(model), measures(gold), measure is attack_auc
    difference = estimate(ours - theirs, -1.0, False)
    return ComparedToGold(estimate(ours, 0.0, is_auc), estimate(theirs, 0.0, is_auc), difference)
