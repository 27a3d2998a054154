"""Distances between ensembles of models: against closed forms, and what they say of gold alone."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from mamushi.evaluation.klom import distance, divergence, halves, margins, surprise


def ensembles(
    rng: np.random.Generator, seeds: int, shift: float = 0.0, spread: float = 1.0, n: int = 60
) -> tuple[np.ndarray, np.ndarray]:
    """Models and gold ones: what texts are, what a seed does to both, what it does to all texts of
    one, and the rest."""
    texts = rng.normal(-30, 5, n)
    both, ours, theirs = (rng.normal(0, 0.3, (seeds, n)) for _ in range(3))
    common = rng.normal(0, 0.2, (2, seeds, 1))
    gold = texts + both + theirs + common[0]
    return texts + shift + spread * (both + ours + common[1]), gold


def test_margins_are_log_likelihoods_of_one_spread() -> None:
    assert margins(np.array([[8.0, 9.0]]), np.array([4.0, 9.0])).tolist() == [[-4.0, -3.0]]


def test_a_divergence_is_that_of_two_gaussians() -> None:
    """By quadrature of the definition, text by text, with the moments of the ensembles."""
    rng = np.random.default_rng(0)
    models, gold = rng.normal(0.4, 0.8, (5, 6)), rng.normal(0.0, 0.5, (7, 6))
    v, w = models.var(axis=0, ddof=1).mean(), gold.var(axis=0, ddof=1).mean()

    def integral(mean: float, other: float) -> float:
        ours, theirs = norm(mean, np.sqrt(v)), norm(other, np.sqrt(w))
        return quad(lambda x: ours.pdf(x) * (ours.logpdf(x) - theirs.logpdf(x)), -9, 9)[0]

    each = list(map(integral, models.mean(axis=0), gold.mean(axis=0)))
    assert divergence(models, gold) == pytest.approx(np.mean(each), abs=1e-6)
    assert np.isnan(divergence(models, np.ones((3, 6))))


def test_the_excess_is_the_cross_entropy_under_gold_less_its_entropy() -> None:
    """In the mean over many seeds, by the closed form of both."""
    rng = np.random.default_rng(0)
    shift, spread = 0.7, 1.5
    found = [surprise(*ensembles(rng, 8, shift, spread)).mean() for _ in range(400)]
    own = 2 * 0.3**2 + 0.2**2
    expected = 0.5 * ((shift**2 + spread**2 * own) / own - 1)
    assert np.mean(found) == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("seeds", [2, 5, 12])
def test_halves_share_no_seed(seeds: int) -> None:
    found = list(halves(seeds))
    assert 2 <= len(found) <= 200
    for one, other in found:
        assert len({*one, *other}) == 2 * (seeds // 2)
    firsts = np.bincount([seed for one, _ in found for seed in one], minlength=seeds)
    assert firsts.min() > 0.5 * firsts.mean()


@pytest.mark.parametrize("seeds", [3, 5])
def test_gold_models_are_no_further_from_gold_than_gold_models(seeds: int) -> None:
    """Of models that differ from gold by the seed alone: the interval holds 0 as often as it says,
    and klom is as often above its floor as below."""
    rng, held, above = np.random.default_rng(0), 0, 0
    for _ in range(200):
        found = distance(*ensembles(rng, seeds))
        assert found.low is not None and found.high is not None
        held += found.low <= 0 <= found.high
        if found.klom is not None and found.floor is not None:
            above += found.klom > found.floor
    assert held >= 183  # of 190
    assert above == 0 if seeds < 4 else 70 < above < 130


@pytest.mark.parametrize(("shift", "spread"), [(0.5, 1.0), (0.0, 3.0)])
def test_other_models_are_further_away(shift: float, spread: float) -> None:
    found = distance(*ensembles(np.random.default_rng(0), 6, shift, spread))
    assert found.klom is not None and found.floor is not None and found.klom > 2 * found.floor
    assert found.low is not None and found.low > 0 and found.p is not None and found.p < 0.05
    assert found.needed is not None and found.needed <= 6 and found.why is None


def test_what_too_few_seeds_cannot_say_is_absent_with_a_reason() -> None:
    rng = np.random.default_rng(0)
    one = distance(*ensembles(rng, 1))
    assert (one.klom, one.excess, one.p, one.needed) == (None, None, None, None)
    assert one.why is not None and "one seed" in one.why
    three = distance(*ensembles(rng, 3, 0.5))
    assert (three.klom, three.floor) == (None, None)
    assert three.excess is not None and three.needed is not None
    assert three.why is not None and "need 4" in three.why
    same = distance(*(np.tile(each[:1], (4, 1)) for each in ensembles(rng, 1)))
    assert same.excess is None and same.why == "gold models of all seeds are the same"
    models, gold = ensembles(rng, 4)
    alike = distance(np.tile(models[:1], (4, 1)), gold)
    assert alike.klom is None and alike.why == "the models of all seeds are the same"
