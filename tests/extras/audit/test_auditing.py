"""Which texts an audit draws, and what the answers say with which certainty."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import hypergeom

from mamushi_extras.audit.auditing import (
    STRATUM_FLOOR,
    allocate,
    draw_sample,
    estimate,
    stratify,
)


def found(*each: tuple[int, bool, float]) -> pd.DataFrame:
    return pd.DataFrame(each, columns=["texts", "listed", "likely"])


WORLD = found((250, True, 0.95), (250, True, 0.7), (500, False, 0.1), (9000, False, 0.001))


def answered(read: list[int], yes: list[int], unsure: list[int] | None = None) -> np.ndarray:
    return np.array([read, yes, unsure or [0] * len(read)], dtype=float)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_no_allocation_narrows_more_and_none_leaves_a_stratum_out() -> None:
    given = allocate(WORLD, 200)
    assert given.sum() == 200 and (given >= 200 // (4 * STRATUM_FLOOR)).all()
    # Zero is likely in the depths, and yet most are read there: that is what recall hangs on.
    assert given.argmax() == 3

    def width(counts: np.ndarray) -> float:
        told = estimate(WORLD, np.array([counts, counts * WORLD["likely"], 0 * counts]), rng())
        return sum((told[name][2] - told[name][1]) ** 2 for name in ("precision", "recall"))

    assert allocate(WORLD, 99_999).tolist() == WORLD["texts"].tolist()
    others = rng().multinomial(188, rng(1).dirichlet([2.0] * 4, size=40)) + 3
    best = min(width(np.minimum(each, WORLD["texts"].to_numpy()).astype(float)) for each in others)
    assert width(given.astype(float)) < 1.05 * best


@pytest.mark.parametrize("yes", [0, 3, 20])
def test_in_one_stratum_the_limits_are_the_exact_ones(yes: int) -> None:
    """Of all K that a sample of 20 of 200 texts does not refute at 2.5% on either side; a stratum
    that was read whole is known."""
    listed = found((200, True, 0.5), (50, False, 0.0))
    told = estimate(listed, answered([20, 50], [yes, 10]), rng())
    assert told["after"] == (0.2, 0.2, 0.2)
    value, *limits = told["precision"]
    every = np.arange(201)
    low = every[hypergeom.sf(yes - 1, 200, every, 20) > 0.025].min()
    high = every[hypergeom.cdf(yes, 200, every, 20) > 0.025].max()
    assert value == yes / 20
    assert np.multiply(limits, 200) == pytest.approx([low, high], abs=2.5)


def test_an_unsure_text_widens_on_both_sides_and_moves_nothing() -> None:
    read, yes = [40, 40, 40, 80], [38, 30, 4, 0]
    sure = estimate(WORLD, answered(read, yes), rng())
    # The same share of yes among those that somebody can say.
    unsure = estimate(WORLD, answered([n + 4 for n in read], yes, [4] * 4), rng())
    for name, (value, low, high) in sure.items():
        assert unsure[name][0] == value
        assert unsure[name][1] < low + 0.01
        assert unsure[name][2] > high - 0.01
    assert unsure["recall"][1] < sure["recall"][1] - 0.05


@pytest.mark.slow
def test_the_intervals_hold_where_little_is_there_and_the_ranks_are_bad() -> None:
    """A share of 1%, of which a list of as many has half and the others lie anywhere."""
    of_domain = np.zeros(10_000, dtype=bool)
    of_domain[rng().choice(100, 50, replace=False)] = True
    of_domain[100 + rng().choice(9900, 50, replace=False)] = True
    place = np.arange(10_000)
    codes = stratify((place >= 100).astype(int), place)
    likely = np.where(place < 100, 0.9, 0.001)
    ranked = pd.DataFrame({"listed": place < 100, "likely": likely}).groupby(codes)
    world = ranked.mean().assign(listed=ranked["listed"].all(), texts=ranked.size())
    counts, held = allocate(world, 100), []
    for seed in range(200):
        drawn = draw_sample(codes, counts, rng(seed))
        yes = np.bincount(codes[drawn], weights=of_domain[drawn], minlength=5)
        told = estimate(world, answered(counts.tolist(), yes.tolist()), rng(seed))
        true = {"precision": 0.5, "recall": 0.5, "after": 50 / 9900}
        held.append([told[name][1] <= share <= told[name][2] for name, share in true.items()])
    assert np.mean(held, axis=0).min() >= 0.93
