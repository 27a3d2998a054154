"""Intervals of an AUC: by clusters of texts, and near 1."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from mamushi.selection.metrics import auc_ends, clusters_of, placements, sampling_error

Doubles = NDArray[np.float64]


def clustered(rng: np.random.Generator, groups: NDArray[np.int64], icc: float) -> Doubles:
    """Normal scores (n,) of variance 1, correlated within a group."""
    shared = rng.normal(size=groups.max() + 1)[groups]
    return np.sqrt(icc) * shared + np.sqrt(1 - icc) * rng.normal(size=len(groups))


@pytest.mark.parametrize(("size", "icc"), [(2, 0.5), (5, 0.3)])
@pytest.mark.parametrize("both", [False, True], ids=["within domains", "over both"])
def test_by_clusters_an_interval_holds_the_auc_where_delongs_does_not(
    size: int, icc: float, both: bool
) -> None:
    """Of fixed scores, so with half of the variance of cross-fitted ones."""
    rng, n, apart = np.random.default_rng(size), 150, 1.0
    forget = np.arange(n) < 50
    groups = np.concatenate([np.arange(50) // size, 50 + np.arange(100) // size])
    if both:
        groups = np.concatenate([np.arange(50) // size, np.arange(100) // size])
    truth, held, wrong = norm.cdf(apart / np.sqrt(2)), [], []
    for _ in range(400):
        placed = placements(clustered(rng, groups, icc) + apart * forget, forget)
        clustered_error = sampling_error(*placed, clusters_of(groups, forget))
        away = abs(placed[0].mean() - truth)
        for covers, error in ((held, clustered_error), (wrong, sampling_error(*placed))):
            covers.append(away <= error.errors * np.sqrt(error.variance))
    assert np.mean(held) >= 0.93
    assert both or np.mean(wrong) <= 0.89


@pytest.mark.parametrize("spread", [1.0, 3.0])
@pytest.mark.parametrize("auc", [0.5, 0.9, 0.98, 0.995])
@pytest.mark.parametrize("sizes", [(16, 48), (100, 100)])
def test_the_ends_of_an_auc_hold_it_also_near_1(
    sizes: tuple[int, int], auc: float, spread: float
) -> None:
    """A forget domain that is wide has few texts among the retain ones, far on the wrong side."""
    rng, times = np.random.default_rng(0), 1000
    shift = norm.ppf(auc) * np.sqrt(1 + spread**2)
    held = []
    for _ in range(times):
        score = np.concatenate(
            [shift + spread * rng.normal(size=sizes[0]), rng.normal(size=sizes[1])]
        )
        placed = placements(score, np.arange(sum(sizes)) < sizes[0])
        value, variance = float(placed[0].mean()), sampling_error(*placed).variance
        low, high = auc_ends(value, variance, min(sizes))
        held.append(low <= auc <= high)
        mirrored = auc_ends(1 - value, variance, min(sizes))
        if value == 0.5:
            continue
        assert mirrored == pytest.approx((1 - high, 1 - low))
    assert np.mean(held) >= 0.93
