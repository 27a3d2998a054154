"""Intervals over seeds and texts: by hand, by SciPy, in worlds of known truth."""

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from mamushi.evaluation.intervals import standard_error
from mamushi_extras.effects.contrasts import (
    NO_GAP,
    NO_TEXTS,
    ONE_SEED,
    contrast,
    holm,
    interval,
    p_value,
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


def test_a_contrast_by_hand_where_only_seeds_or_only_texts_differ() -> None:
    tokens, apart = np.full(24, 2.0), np.array([0.1, 0.2, 0.6])
    of_seeds = contrast(apart[:, None] * tokens, np.zeros((3, 24)), tokens)
    # The texts agree: what is left is the t interval over three seeds.
    half = 4.302653 * apart.std(ddof=1) / np.sqrt(3)
    assert (of_seeds.low, of_seeds.high) == pytest.approx((0.3 - half, 0.3 + half))
    assert of_seeds.p == pytest.approx(ttest_1samp(apart, 0).pvalue)
    rates, tokens = np.arange(30.0) / 10, np.ones(30)
    half = 2.045230 * rates.std(ddof=1) / np.sqrt(30)
    for seeds in (1, 4):
        of_texts = contrast(
            np.tile(rates, (seeds, 1)), np.zeros((seeds, 30)), tokens, of_texts=True
        )
        assert (of_texts.low, of_texts.high) == pytest.approx((1.45 - half, 1.45 + half))
    alone = contrast(rates[None], np.zeros((1, 30)), tokens)
    assert (alone.estimate, alone.reason) == (pytest.approx(1.45), ONE_SEED)
    assert np.isnan([alone.low, alone.high, alone.p]).all()


@pytest.mark.parametrize(
    ("seeds", "texts", "per_group", "over_seeds"),
    [(2, 150, 1, 0.02), (3, 60, 1, 0.0), (5, 150, 5, 0.05)],
)
def test_an_interval_holds_the_truth_and_p_is_rarely_small(
    seeds: int, texts: int, per_group: int, over_seeds: float
) -> None:
    rng, held, small = np.random.default_rng(2), 0, 0
    for _ in range(400):
        apart, tokens, groups = world(rng, seeds, texts, per_group, over_seeds)
        effect = contrast(apart, np.zeros_like(apart), tokens, groups)
        if effect.reason == NO_TEXTS:
            held += 1
            continue
        held += effect.low <= TRUE <= effect.high
        null = contrast(apart, np.tile(TRUE * tokens, (seeds, 1)), tokens, groups)
        small += null.p < 0.05
        assert (null.p < 0.05) == (not null.low <= 0 <= null.high)
    # 0.93 of 400, and as many errors of a share of 400 above 0.05.
    assert held >= 372 - 9
    assert small <= 20 + 17


@pytest.mark.parametrize(("gap", "net"), [(0.05, False), (0.3, False), (0.05, True), (0.3, True)])
def test_a_share_of_the_gap_holds_the_truth_or_is_withheld(gap: float, net: bool) -> None:
    """Net of what all texts lose, retain texts as well, which opens no gap."""
    n = 300 if net else 150
    forget, lost = (np.arange(n) % 6 < 3, 0.2) if net else (None, 0.0)
    rng, held, given = np.random.default_rng(3), 0, 0
    for _ in range(400):
        apart, tokens, groups = world(rng, 4, n, 3, 0.02)
        beta0 = rng.normal(3, 0.02, (4, 1)) * tokens
        opens = (gap + 0.2 * rng.normal(size=n)) * (True if forget is None else forget)
        gold = beta0 + (opens + lost + rng.normal(0, 0.02, (4, 1))) * tokens
        arm = beta0 + (0.5 * opens + 0.8 * lost) * tokens + apart - TRUE * tokens
        effect = contrast(arm, beta0, tokens, groups, forget=forget, gap=(beta0, gold))
        if np.isfinite(effect.low):
            given += 1
            held += effect.low <= 0.5 <= effect.high
        else:
            assert effect.reason == NO_GAP and np.isnan(effect.estimate)
    # Of all, not of those given: a small gap that is effect is one that chance has made larger.
    assert held + 400 - given >= 372
    assert held >= 0.93 * given if gap > 0.1 else given < 250


@pytest.mark.parametrize("seeds", [2, 3, 8])
def test_p_and_interval_are_those_of_scipy(seeds: int) -> None:
    values = np.random.default_rng(seeds).normal(0.5, 1, seeds)
    expected = ttest_1samp(values, 0)
    assert np.isnan(standard_error(values[:1]))
    assert p_value(values) == pytest.approx(expected.pvalue)
    assert interval(values) == pytest.approx(tuple(expected.confidence_interval(0.95)))


def test_holm_by_hand() -> None:
    # In order: 4 x 0.01, 3 x 0.02, 2 x 0.03, then 0.2; none below the one before it.
    corrected = holm([0.03, np.nan, 0.01, 0.2, 0.02])
    np.testing.assert_allclose(corrected, [0.06, np.nan, 0.04, 0.2, 0.06])
    np.testing.assert_allclose(holm([0.6, 0.7]), [1, 1])
    assert len(holm([])) == 0
