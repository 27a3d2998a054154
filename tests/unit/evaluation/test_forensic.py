"""Telling models apart and naming removed texts: chance where there is nothing to find."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from mamushi.evaluation.forensic import (
    mean_over_seeds,
    name_removed_texts,
    pairs_needed,
    tell_models_apart,
)


def pairs(rng: np.random.Generator, seeds: int, shift: float) -> tuple[np.ndarray, np.ndarray]:
    """Of each seed a model of either kind, which share what the seed does to them."""
    texts, by_seed = rng.normal(-30, 5, 80), rng.normal(0, 0.5, (seeds, 80))
    where = shift * (np.arange(80) < 20)
    first, second = (texts + by_seed + rng.normal(0, 0.5, (seeds, 80)) for _ in range(2))
    return first + where + rng.normal(0, 0.1, (seeds, 1)), second


def test_models_are_told_by_what_other_pairs_have_taught() -> None:
    """By hand: the mean difference of the other pairs, and on which side of it a model lies."""
    first, second = pairs(np.random.default_rng(0), 5, 0.12)
    right = []
    for seed in range(5):
        others = [s for s in range(5) if s != seed]
        direction = np.mean(first[others] - second[others], axis=0)
        right.append(direction @ first[seed] > direction @ second[seed])
    assert 0 < sum(right) < 5
    assert tell_models_apart(first, second).share == np.mean(right)


def test_p_is_that_of_all_exchanges_within_pairs() -> None:
    first, second = pairs(np.random.default_rng(3), 4, 0.3)

    def total(signs: tuple[float, ...]) -> float:
        apart = np.array(signs)[:, None] * (first - second)
        return float(sum(a @ b for i, a in enumerate(apart) for b in apart[:i]))

    every = [total(signs) for signs in product((1, -1), repeat=4)]
    assert tell_models_apart(first, second).p == np.mean([x >= every[0] - 1e-9 for x in every])


def test_models_of_one_kind_are_told_by_chance() -> None:
    rng = np.random.default_rng(0)
    found = [tell_models_apart(*pairs(rng, 7, 0.0)) for _ in range(400)]
    assert np.mean([each.share for each in found]) == pytest.approx(0.5, abs=0.05)
    assert np.mean([each.p < 0.05 for each in found]) == pytest.approx(0.05, abs=0.03)
    assert np.mean([each.low <= each.share <= each.high for each in found]) >= 0.93


def test_models_of_two_kinds_are_told_apart_from_so_many_pairs_on() -> None:
    found = tell_models_apart(*pairs(np.random.default_rng(0), 7, 1.0))
    assert (found.share, found.p) == (1.0, 2 / 2**7)
    assert found.low <= 0.5 <= found.high < 1
    many = tell_models_apart(*pairs(np.random.default_rng(0), 14, 1.0))
    assert many.share == 1.0 and many.p < 0.01
    few, enough = (
        tell_models_apart(*pairs(np.random.default_rng(0), n, 5.0)).p
        for n in (pairs_needed() - 1, pairs_needed())
    )
    assert enough < 0.05 <= few


def test_texts_that_differ_in_nothing_are_named_by_chance() -> None:
    """The interval over texts and seeds holds 0.5, whether texts have an effect in all seeds or
    not."""
    rng, held, aucs = np.random.default_rng(0), 0, []
    for _ in range(40):
        texts = rng.standard_t(3, 160)
        found = [
            name_removed_texts(*np.split(texts + rng.standard_t(3, 160), [90])) for _ in range(3)
        ]
        mean, low, high = mean_over_seeds(found)
        held += low <= 0.5 <= high
        aucs.append(mean)
    assert np.mean(aucs) == pytest.approx(0.5, abs=0.03)
    assert held >= 36


@pytest.mark.parametrize("effect", ["too low", "too high", "either"])
def test_texts_that_were_pushed_are_named(effect: str) -> None:
    rng = np.random.default_rng(0)
    sides = {"too low": -1.5, "too high": 1.5, "either": 3 * rng.choice([-1, 1], 100)}
    found = name_removed_texts(rng.normal(sides[effect], 1, 100), rng.normal(0, 1, 200))
    assert found.auc > 0.75
    mean, low, high = mean_over_seeds([found])
    assert mean == found.auc and 0.5 < low < mean < high


def test_an_auc_is_that_of_scikit_learn_where_the_side_is_plain() -> None:
    """With one side alone, every fold's classifier ranks as the number itself does."""
    rng = np.random.default_rng(0)
    removed, unseen = rng.normal(0.8, 0.3, 500), rng.normal(0.6, 0.3, 500)
    values = np.concatenate([removed, unseen])
    expected = roc_auc_score(np.repeat([1, 0], 500), values)
    found = name_removed_texts(removed, unseen)
    assert found.auc == pytest.approx(expected, abs=0.02)
    # Hanley and McNeil 1982, for distributions near to these.
    q1, q2 = expected / (2 - expected), 2 * expected**2 / (1 + expected)
    hanley = (expected * (1 - expected) + 499 * (q1 + q2 - 2 * expected**2)) / 500**2
    assert found.variance == pytest.approx(hanley, rel=0.15)
