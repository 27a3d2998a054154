"""Errors over seeds and texts: by hand, and on worlds whose truth is known."""

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from mamushi.evaluation.crossed import (
    NO_GAP,
    NO_TEXTS,
    contrast,
    fieller,
    parts_of,
)

TRUE = 0.1


def world(
    rng: np.random.Generator, seeds: int, texts: int, per_group: int, over_seeds: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return differences (S, n) of mean ``TRUE`` a token, with heavy tails over groups, texts and
    what is left of both; tokens (n,) of one and two digits; groups (n,)."""
    groups = np.arange(texts) // per_group
    tokens = np.maximum(rng.lognormal(3, 0.8, texts), 2).round()

    def tails(*shape: int) -> np.ndarray:
        return rng.standard_t(3, shape) / np.sqrt(3)

    of_text = 0.1 * (tails(groups.max() + 1)[groups] + tails(texts))
    rates = TRUE + over_seeds * rng.normal(size=(seeds, 1)) + of_text + 0.1 * tails(seeds, texts)
    return rates * tokens, tokens, groups


def test_a_contrast_by_hand_of_seeds_that_all_texts_share() -> None:
    tokens = np.full(24, 2.0)
    apart = np.array([0.1, 0.2, 0.6])
    found = contrast(apart[:, None] * tokens, np.zeros((3, 24)), tokens)
    # The texts agree: what is left is the t interval over three seeds.
    error = apart.std(ddof=1) / np.sqrt(3)
    assert found.estimate == pytest.approx(0.3)
    assert (found.low, found.high) == pytest.approx(
        (0.3 - 4.302653 * error, 0.3 + 4.302653 * error)
    )
    assert found.p == pytest.approx(ttest_1samp(apart, 0).pvalue)


def test_a_contrast_by_hand_of_texts_whom_all_seeds_read_alike() -> None:
    rates, tokens = np.arange(30.0) / 10, np.ones(30)
    for seeds in (1, 4):
        found = contrast(np.tile(rates, (seeds, 1)), np.zeros((seeds, 30)), tokens)
        half = 2.045230 * rates.std(ddof=1) / np.sqrt(30)
        assert (found.low, found.high) == pytest.approx((1.45 - half, 1.45 + half))


def test_variances_are_those_of_the_model_on_average() -> None:
    rng, found = np.random.default_rng(1), []
    for _ in range(800):
        y = rng.normal(0, 0.3, (4, 1)) + rng.normal(0, 0.7, 60) + rng.normal(size=(4, 60))
        parts, _ = parts_of(y[None], np.ones(60))
        found.append([part[0, 0] for part in (parts.seeds, parts.texts, parts.rest)])
    left = 1 / 240
    truth = [0.09 / 4 + left, 0.49 / 60 + left, left]
    assert np.mean(found, axis=0) == pytest.approx(truth, rel=0.06)


@pytest.mark.parametrize(
    ("seeds", "texts", "per_group", "over_seeds"),
    [(2, 150, 1, 0.02), (3, 60, 1, 0.0), (3, 150, 5, 0.02), (5, 150, 5, 0.05), (5, 150, 1, 0.0)],
)
def test_an_interval_holds_the_truth_and_p_is_rarely_small(
    seeds: int, texts: int, per_group: int, over_seeds: float
) -> None:
    rng, held, small = np.random.default_rng(2), 0, 0
    for _ in range(400):
        apart, tokens, groups = world(rng, seeds, texts, per_group, over_seeds)
        found = contrast(apart, np.zeros_like(apart), tokens, groups)
        if found.reason == NO_TEXTS:
            held += 1
            continue
        held += found.low <= TRUE <= found.high
        null = contrast(apart, np.tile(TRUE * tokens, (seeds, 1)), tokens, groups)
        small += null.p < 0.05
        assert (null.p < 0.05) == (not null.low <= 0 <= null.high)
    # 0.93 of 400, and as many errors of a share of 400 above 0.05.
    assert held >= 372 - 9
    assert small <= 20 + 17


@pytest.mark.parametrize("gap", [0.05, 0.3])
def test_a_share_of_the_gap_holds_the_truth_or_is_withheld(gap: float) -> None:
    rng, held, given = np.random.default_rng(3), 0, 0
    for _ in range(400):
        apart, tokens, groups = world(rng, 4, 150, 3, 0.02)
        beta0 = rng.normal(3, 0.02, (4, 1)) * tokens
        opens = gap + 0.2 * rng.normal(size=150)
        gold = beta0 + (opens + rng.normal(0, 0.02, (4, 1))) * tokens
        arm = beta0 + 0.5 * opens * tokens + apart - TRUE * tokens
        found = contrast(arm, beta0, tokens, groups, beta0=beta0, gold=gold)
        if np.isfinite(found.low):
            given += 1
            held += found.low <= 0.5 <= found.high
        else:
            assert found.reason == NO_GAP and np.isnan(found.estimate)
    # Of all, not of those given: a small gap that is found is one that chance has made larger.
    assert held + 400 - given >= 372
    assert held >= 0.93 * given if gap > 0.1 else given < 250


def test_fieller_is_the_delta_method_where_the_gap_is_known() -> None:
    low, high = fieller(np.array([1.0, 2.0]), np.array([[0.01, 0], [0, 1e-12]]), 2.0) or (0, 0)
    assert (low, high) == pytest.approx((0.4, 0.6))
    assert fieller(np.array([1.0, 2.0]), np.array([[0.01, 0], [0, 1.0]]), 2.0) is None
