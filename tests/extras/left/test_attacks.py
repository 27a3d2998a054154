"""Attacks against their formulas and other implementations, and what chance gives them."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm, ttest_ind
from sklearn.metrics import roc_auc_score, roc_curve

from mamushi_extras.left.attacks import (
    MEASURES,
    compare,
    likelihood_ratio,
    variance_and_errors,
)

Doubles = NDArray[np.float64]


def compared(scores: Doubles, members: int, measure: str = "auc") -> dict[str, Any]:
    """Of models and gold ones (2, S, n): the first texts are members, the rest others."""
    model, gold = scores
    member = np.arange(model.shape[1]) < members
    return compare(model, gold, np.tile(member, (len(model), 1)), ~member, measure)


def value(measure: str, members: Doubles, others: Doubles) -> float:
    ones = np.ones((1, len(members))), np.ones((1, len(others)))
    return float(MEASURES[measure][0](members, others, *ones)[0])


def test_the_likelihood_ratio_is_that_of_two_normal_distributions() -> None:
    rng = np.random.default_rng(0)
    difficulty = rng.normal(-3, 1, 40)
    outside = difficulty + rng.normal(0, 0.1, (3, 40))
    seen = np.arange(40) < 30
    inside = difficulty + 0.5 * seen + rng.normal(0, 0.2, (3, 40))
    target = difficulty + rng.normal(0, 0.1, 40)

    middle = np.array([sum(outside[:, i]) / 3 for i in range(40)])
    away = np.mean([sum((outside[:, i] - middle[i]) ** 2) / 2 for i in range(40)]) * 4 / 3
    gains = [
        inside[k, i] - np.mean([outside[j, i] for j in range(3) if j != k])
        for k in range(3)
        for i in range(30)
    ]
    expected = norm.logpdf(target - middle, np.mean(gains), np.std(gains, ddof=1))
    expected -= norm.logpdf(target - middle, 0, np.sqrt(away))
    np.testing.assert_allclose(likelihood_ratio(target, outside, inside, seen), expected)


@pytest.mark.parametrize("digits", [0, 1, 6], ids=["many ties", "ties", "none"])
def test_measures_are_those_of_scikit_learn(digits: int) -> None:
    rng = np.random.default_rng(digits)
    members, others = rng.normal(0.7, 1, 90).round(digits), rng.normal(0, 1, 230).round(digits)
    both, truth = np.concatenate([members, others]), np.arange(320) < 90
    assert value("auc", members, others) == pytest.approx(roc_auc_score(truth, both))
    fpr, found, _ = roc_curve(truth, both, drop_intermediate=False)
    assert value("tpr", members, others) == pytest.approx(found[fpr <= 0.01].max())


def test_differences_are_paired_by_texts_and_seeds_that_disagree_widen_intervals() -> None:
    """Both models find the same texts easy: their AUCs are unsure, their difference is not."""
    rng = np.random.default_rng(4)
    easy, member = rng.normal(0, 1, 200), np.arange(200) < 100
    found = compared(np.array([[easy + 0.02 * member], [easy]]), 100)
    assert found["difference_high"] - found["difference_low"] < (found["high"] - found["low"]) / 5
    assert found["difference_low"] > 0
    alike = easy + 0.01 * rng.normal(size=(3, 200))
    apart = easy + np.outer((-0.5, 0.0, 0.5), member)
    golds = np.tile(easy, (3, 1))
    narrow, wide = (compared(np.stack([each, golds]), 100) for each in (alike, apart))
    assert wide["high"] - wide["low"] > 2 * (narrow["high"] - narrow["low"])


@pytest.mark.parametrize("measure", ["auc", "tpr"])
def test_of_models_that_know_nothing_intervals_hold_chance(measure: str) -> None:
    """As often as 95% intervals should, up to what so few repeats tell: 120 worlds of 3 seeds."""
    rng = np.random.default_rng(6)
    held = apart = 0
    for _ in range(120):
        difficulty = rng.normal(0, 1, 240)
        scores = difficulty + rng.normal(0, 0.3, (3, 2, 240))
        row = compared(scores.swapaxes(0, 1), 120, measure)
        held += row["low"] <= MEASURES[measure][1] <= row["high"]
        apart += row["verdict"] != "not told from gold"
    assert held >= 0.88 * 120
    assert apart <= 0.1 * 120


def test_two_parts_of_a_variance_have_the_freedom_of_welch() -> None:
    one, two = np.random.default_rng(0).normal(0, 1, 5), np.random.default_rng(1).normal(0, 3, 9)
    low, high = ttest_ind(one, two, equal_var=False).confidence_interval(0.95)
    variance, errors = variance_and_errors(one, two.var(ddof=1) / 9, 8)
    assert errors * variance**0.5 == pytest.approx((high - low) / 2)
    assert variance_and_errors(one[:1], 0.04, np.inf) == pytest.approx((0.04, 1.959964))
