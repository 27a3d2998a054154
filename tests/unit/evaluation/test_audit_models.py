"""Distances between ensembles of models: against closed forms, and what they say of gold alone."""

import numpy as np
import pytest

from mamushi.evaluation.audit_models import distance, margins, surprise


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


def test_the_excess_is_the_cross_entropy_under_gold_less_its_entropy() -> None:
    """In the mean over many seeds, by the closed form of both."""
    rng = np.random.default_rng(0)
    shift, spread = 0.7, 1.5
    found = [surprise(*ensembles(rng, 8, shift, spread)).mean() for _ in range(400)]
    own = 2 * 0.3**2 + 0.2**2
    expected = 0.5 * ((shift**2 + spread**2 * own) / own - 1)
    assert np.mean(found) == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("seeds", [3, 5])
def test_gold_models_are_no_further_from_gold_than_gold_models(seeds: int) -> None:
    """Of models that differ from gold by the seed alone the interval holds 0 as often as said."""
    rng, held = np.random.default_rng(0), 0
    for _ in range(200):
        found = distance(*ensembles(rng, seeds))
        held += found["excess_low"] <= 0 <= found["excess_high"]
    assert held >= 183  # of 190


@pytest.mark.parametrize("seeds", [3, 5, 8])
@pytest.mark.parametrize(("shift", "spread"), [(0.5, 1.0), (2.0, 1.0), (0.0, 3.0)])
def test_intervals_hold_the_distance_of_other_models(
    seeds: int, shift: float, spread: float
) -> None:
    """The error of gold is the same for the models of all seeds, whose spread leaves it out."""
    rng, held = np.random.default_rng(seeds), 0
    own = 2 * 0.3**2 + 0.2**2
    truth = 0.5 * ((shift**2 + spread**2 * own) / own - 1)
    for _ in range(200):
        found = distance(*ensembles(rng, seeds, shift, spread))
        held += found["excess_low"] <= truth <= found["excess_high"]
    assert held >= 180  # of 190


@pytest.mark.parametrize(("shift", "spread"), [(1.0, 1.0), (0.0, 3.0)])
def test_other_models_are_further_away(shift: float, spread: float) -> None:
    found = distance(*ensembles(np.random.default_rng(0), 10, shift, spread))
    assert found["excess_low"] > 0 and found["p"] < 0.05
    assert found["seeds_needed_low"] <= 10 <= found["seeds_needed_high"]


def test_what_cannot_be_said_is_absent_with_a_reason() -> None:
    rng = np.random.default_rng(0)
    two = distance(*ensembles(rng, 2))
    assert two.keys() == {"excess", "why"} and "seeds" in two["why"]
    one = distance(*ensembles(rng, 1))
    assert one.keys() == {"why"} and "one seed" in one["why"]
    same = distance(*(np.tile(each[:1], (4, 1)) for each in ensembles(rng, 1)))
    assert same == {"why": "gold models of all seeds are the same"}
