"""How much of an unlabelled corpus is of a domain, and how likely each text is."""

import numpy as np
import pytest
from scipy.stats import binom, norm

from mamushi_extras.unlabelled.share import (
    CROSSED,
    Tilt,
    count_bounds,
    share,
    upper_bound,
)

Doubles = np.ndarray


def world(seed: int, a: float, apart: float = 1.8, n1: int = 100, n: int = 2000) -> list[Doubles]:
    """Scores of examples, of a corpus with the share ``a``, and of texts that are wanted."""
    rng = np.random.default_rng(seed)
    here = rng.binomial(n, a)
    corpus = np.concatenate([rng.normal(apart, 1, here), rng.normal(0, 1, n - here)])
    return [rng.normal(apart, 1, n1), corpus, rng.normal(0, 1, 300)]


def test_bounds_of_a_count_are_exact() -> None:
    low, high = count_bounds(7, 20)
    assert [binom.sf(6, 20, low), binom.cdf(7, 20, high)] == pytest.approx([0.025, 0.025])
    assert count_bounds(0, 20)[0] == 0 and count_bounds(20, 20)[1] == 1


@pytest.mark.parametrize("a", [0.01, 0.2])
def test_the_upper_bound_holds_and_is_of_use(a: float) -> None:
    found = [upper_bound(*world(seed, a)[:2]) for seed in range(200)]
    assert np.mean(np.array(found) >= a) >= 0.93
    assert np.median(found) < a + 0.25


@pytest.mark.slow
@pytest.mark.parametrize("a", [0.01, 0.2])
def test_with_wanted_texts_both_ends_hold(a: float) -> None:
    found = [share(*world(seed, a)) for seed in range(200)]
    told = [(each.low, each.high) for each in found if each.reason is None]
    assert np.mean([low <= a <= high for low, high in told]) >= 0.93
    assert np.median([high - low for low, high in told]) < 0.4
    assert {each.reason for each in found} <= {None, CROSSED} and len(told) >= 194


def test_the_posterior_is_that_of_a_world_that_is_known() -> None:
    a, apart = 0.2, 1.8
    examples, corpus, _ = world(2, a, apart, n1=3000, n=20000)
    fitted = Tilt.fit(examples, corpus)
    assert fitted.share == pytest.approx(a, abs=0.03)
    one, two = a * norm.pdf(corpus - apart), (1 - a) * norm.pdf(corpus)
    assert fitted.posterior(corpus) == pytest.approx(one / (one + two), abs=0.06)
    # What it says adds up to the share, whatever that is held to be.
    known = Tilt.fit(examples, corpus, 0.1)
    assert known.share == 0.1
    assert known.posterior(corpus).mean() == pytest.approx(0.1, abs=0.02)
    found = fitted.posterior(np.linspace(-30, 30, 61))
    assert (np.diff(found) >= 0).all() and found[0] < 1e-6 and found[-1] == pytest.approx(1)
