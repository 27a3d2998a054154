"""How far an ensemble of models is from one of gold models, text by text.

Two models of one perplexity can still say other things of its texts. So the models of all seeds are
compared as distributions, as KLOM does for classifiers (Georgiev et al. 2024, Attribute-to-Delete:
Machine Unlearning via Datamodel Matching): the Kullback-Leibler divergence of the margins of a text
under deleted models from those under gold ones. The margin ``log p - log(1 - p)`` of a text is its
log-likelihood, as p is tiny. KLOM counts margins in bins, for which each text needs a hundred
models. Here they are taken for Gaussian, with one variance for all texts of a domain, which a few
models give; for this to hold, log-likelihoods are divided by the root of the number of tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb

import numpy as np

from mamushi.evaluation.paired import interval, known, p_value, seeds_needed
from mamushi.evaluation.sad import Floats

FEWEST = 4
"""Seeds of which two halves have a spread of their own."""
SPLITS = 200
"""Splits into halves that are looked at where there are more."""


def margins(nll: Floats, tokens: Floats) -> Floats:
    """Return log-likelihoods (..., n) over the root of the texts' predicted ``tokens`` (n,)."""
    return -nll / np.sqrt(tokens)


def divergence(models: Floats, gold: Floats) -> float:
    """Return the mean over n texts of ``KL(N(mu_m, v_m) || N(mu_g, v_g))`` in nats.

    ``models`` (S, n) and ``gold`` (T, n) are margins of two or more models each. Not corrected for
    the error of the means, so that it is above 0 of two ensembles of one kind: hold it against that
    of gold models among themselves. NaN where models do not differ.
    """
    ours, theirs = (float(each.var(axis=0, ddof=1).mean()) for each in (models, gold))
    if not (ours > 0 and theirs > 0):
        return np.nan
    apart = float(((models.mean(axis=0) - gold.mean(axis=0)) ** 2).mean())
    return 0.5 * (apart / theirs + ours / theirs - 1 - np.log(ours / theirs))


def halves(seeds: int) -> Iterator[tuple[list[int], list[int]]]:
    """Yield two disjoint sets of ``seeds // 2`` seeds, in both orders: all, or ``SPLITS`` drawn."""
    size = seeds // 2
    if comb(seeds, size) * comb(seeds - size, size) <= SPLITS:
        for one in combinations(range(seeds), size):
            rest = [seed for seed in range(seeds) if seed not in one]
            for other in combinations(rest, size):
                yield [*one], [*other]
        return
    rng = np.random.default_rng(0)
    for _ in range(SPLITS):
        order = rng.permutation(seeds).tolist()
        yield order[:size], order[size : 2 * size]


@dataclass(frozen=True)
class Distance:
    """How far S models of as many seeds are from the gold models of the same seeds, in nats a text.

    ``klom``: of half of them from gold models of other seeds; ``floor``: of as many gold models
    from the same. ``excess``: the mean ``surprise`` with its 95% t interval over seeds, the ``p``
    that it is 0, and the seeds ``needed`` to show it. ``why`` says what is missing, and why.
    """

    klom: float | None = None
    floor: float | None = None
    excess: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    needed: int | None = None
    why: str | None = None


def surprise(models: Floats, gold: Floats) -> Floats:
    """Return by seed (S,) how much more a model surprises the other seeds' gold models than the
    gold model of its own seed does: nats a text, mean over texts.

    ``1/2 mean_x[(m_s - g)^2 - (g_s - g)^2] / v``, where g is the mean of the gold models of other
    seeds. Its mean is 0 of models that are like gold ones, and else
    ``1/2 [((mu_m - mu_g)^2 + v_m) / v_g - 1]``, the cross entropy of the one under the other less
    the entropy of gold. ``models``, ``gold`` (S, n), S of 2 or more.
    """
    others = (gold.sum(axis=0) - gold) / (len(gold) - 1)
    spread = gold.var(axis=0, ddof=1).mean()
    apart = ((models - others) ** 2 - (gold - others) ** 2).mean(axis=1)
    return np.asarray(0.5 * apart / spread, dtype=np.float64)


def distance(models: Floats, gold: Floats) -> Distance:
    """Return the distance of the margins ``models`` (S, n) from ``gold`` (S, n), by seed."""
    seeds = len(gold)
    if seeds < 2:
        return Distance(why="one seed: gold models have no spread to measure by")
    if not gold.var(axis=0, ddof=1).mean() > 0:
        return Distance(why="gold models of all seeds are the same")
    each = surprise(models, gold)
    low, high = interval(each)
    found = Distance(
        excess=float(each.mean()),
        low=low,
        high=high,
        p=known(p_value(each)),
        needed=seeds_needed(float(each.mean()), float(each.std(ddof=1)), 1),
    )
    if seeds < FEWEST:
        why = f"{seeds} seeds: klom and its floor compare halves, and need {FEWEST}"
        return replace(found, why=why)
    parts = list(halves(seeds))
    ours = float(np.mean([divergence(models[a], gold[b]) for a, b in parts]))
    floor = float(np.mean([divergence(gold[a], gold[b]) for a, b in parts]))
    if np.isnan(ours):
        return replace(found, floor=floor, why="the models of all seeds are the same")
    return replace(found, klom=ours, floor=floor)
