"""The frontier of all budgets in one pass, its bands against a plain loop, and its exact values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from mamushi.evidence.bootstrap import LEVELS, bands
from mamushi.evidence.calibration import LOSS_SLACK, HalfScores, RatioScores, platt
from mamushi.evidence.frontier import Frontier, gain, removal_order
from tests.support import divergences
from tests.support.divergences import preservation_by_importance
from tests.support.score_files import (
    ranks_of,
)

N1, N2 = 60, 90
PI1 = N1 / (N1 + N2)
COUNTS = np.array([0, 6, 15, 30, 59, N1])
FORMS = ("threshold", "importance", "share")


def normal(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Log ratios of N(1, 1) against N(-1, 1), 2x, of samples of either."""
    rng = np.random.default_rng(seed)
    return 2 * rng.normal(1, 1, N1), 2 * rng.normal(-1, 1, N2)


def sample(form: str, seed: int = 0) -> tuple[Frontier, np.ndarray, np.ndarray]:
    """A frontier whose selector is a noisy ratio, with its scores."""
    l1, l2 = normal(seed)
    rng = np.random.default_rng([seed, 1])
    s1, s2 = l1 + rng.normal(0, 1, N1), l2 + rng.normal(0, 1, N2)
    seen = s2 if form == "threshold" else np.full(N2, np.nan)
    return Frontier(removal_order(s1, ranks_of(s1), seen, form == "share"), l1, l2, PI1), s1, s2


FORGET = np.arange(N1 + N2) < N1
NO_FOLDS = np.zeros(N1 + N2, dtype=np.int64)


def estimated(l1: np.ndarray, l2: np.ndarray, halves: Sequence[HalfScores] = ()) -> RatioScores:
    """The log ratios as scores, whose calibration is to find a slope of about 1."""
    return RatioScores(np.concatenate([l1, l2]), FORGET, NO_FOLDS, halves)


def plainly(
    form: str, l1: np.ndarray, l2: np.ndarray, s1: np.ndarray, s2: np.ndarray, k: int
) -> tuple[float, float]:
    """One budget by the definitions, for samples that may hold an example more than once."""
    b = k / len(l1)
    kept1 = np.ones(len(l1))
    kept1[np.argsort(-s1, kind="stable")[:k]] = 0
    if form == "share":
        kept1 = np.full(len(l1), 1 - b)
    if form == "share" or k in (0, len(l1)):
        preserved = divergences.preservation(l2, np.full(len(l2), 1 - b), PI1, b)
    elif form == "importance":
        preserved = preservation_by_importance(l1, l2, kept1, PI1)
    else:
        threshold = s1[kept1 == 0].min()
        preserved = divergences.preservation(l2, (s2 < threshold) * 1.0, PI1, b)
    return divergences.removal(l1, kept1, PI1), preserved


@pytest.mark.parametrize("form", FORMS)
def test_all_budgets_in_one_pass_equal_one_at_a_time(form: str) -> None:
    one, s1, s2 = sample(form)
    removed, preserved = one.at(COUNTS)
    for i, k in enumerate(COUNTS):
        wanted = plainly(form, one.l1, one.l2, s1, s2, int(k))
        assert (removed[i], preserved[i]) == pytest.approx(wanted, abs=1e-12)
    assert preserved[-1] == pytest.approx(0, abs=1e-12)
    assert removed[-1] == pytest.approx(one.l1.mean())


def test_bands_equal_a_plain_loop_over_resampled_examples() -> None:
    """Calibrated anew in each resample, with nothing lost, and with more than one pair of halves
    says."""
    given = {form: sample(form) for form in FORMS}
    rng = np.random.default_rng(3)
    l1, l2 = normal()
    score = np.concatenate([l1, l2])
    noisy = [HalfScores(*(score + rng.normal(size=(2, N1 + N2)) * sd), NO_FOLDS) for sd in (1, 2)]
    scores = estimated(l1, l2, noisy)
    found = bands(scores, {f: one.ranks for f, (one, _, _) in given.items()}, COUNTS, 40, seed=7)
    rng = np.random.default_rng(7)
    drawn: dict[str, Any] = {form: {side: [] for side in ("near", *LOSS_SLACK)} for form in FORMS}
    for which in range(40):
        # An example that is drawn m times stands m times in the resample.
        rows1, rows2 = (np.sort(rng.integers(n, size=n)) for n in (N1, N2))
        rows = np.concatenate([rows1, N1 + rows2])
        pair = noisy[which % 2]
        again = RatioScores(
            score[rows], FORGET, NO_FOLDS, [HalfScores(pair.a[rows], pair.b[rows], NO_FOLDS)]
        )
        u = platt(again.score, FORGET, NO_FOLDS, np.ones(len(rows)))(again.score, NO_FOLDS)
        apart = u[:N1].mean() - u[N1:].mean()
        lost = apart * max(1 / again.kept() - 1, 0)
        sides = {"near": 0.0, **{side: lost + slack * apart for side, slack in LOSS_SLACK.items()}}
        for form, (_, s1, s2) in given.items():
            s1, s2 = s1[rows1], s2[rows2]
            ranks = removal_order(s1, ranks_of(s1), s2 if form == "threshold" else s2 * np.nan,
                            form == "share")  # fmt: skip
            for side, spread in sides.items():
                at = Frontier(ranks, u[:N1], u[N1:], PI1, spread)
                drawn[form][side].append(np.transpose(at.at(COUNTS)))
    estimate = scores.estimate()
    for form, (one, _, _) in given.items():
        u = estimate.log_ratio
        value = np.array(Frontier(one.ranks, u[:N1], u[N1:], PI1, estimate.lost).at(COUNTS))
        loops = {side: np.array(each) for side, each in drawn[form].items()}
        for name, far, what in (
            ("removal", "removal", lambda pair: pair[..., 0]),
            ("preservation", "preservation", lambda pair: pair[..., 1]),
            ("gain", "removal", lambda pair: gain(pair[..., 0])),
        ):
            ends = [np.quantile(what(loops[side]), LEVELS, axis=0) for side in ("near", far)]
            point = what(value.T[None])[0]
            low = np.min([point, *(end[0] for end in ends)], axis=0)
            high = np.max([point, *(end[1] for end in ends)], axis=0)
            band = found[form][name]
            assert band.value == pytest.approx(point, abs=1e-9)
            assert band.low == pytest.approx(low, abs=1e-6)
            assert band.high == pytest.approx(high, abs=1e-6)
        assert found[form]["gain"].low[0] == found[form]["gain"].high[0] == 0
    alone = bands(scores, {"share": given["share"][0].ranks}, COUNTS, 40, seed=7)["share"]
    assert alone["removal"].low.tolist() == found["share"]["removal"].low.tolist()


def test_ties_take_the_share_of_the_retain_examples_that_goes_of_the_forget_examples() -> None:
    l1, l2 = normal()
    s1, s2 = np.round(l1), np.round(l2)
    one = Frontier(removal_order(s1, ranks_of(s1), s2, False), l1, l2, PI1)
    removed, preserved = one.at(COUNTS)
    for i, k in enumerate(COUNTS[1:-1], start=1):
        threshold = np.sort(s1)[::-1][k - 1]
        share = (k - np.sum(s1 > threshold)) / np.sum(s1 == threshold)
        outside = divergences.preservation(l2, (s2 <= threshold) * 1.0, PI1, k / N1)
        inside = divergences.preservation(l2, (s2 < threshold) * 1.0, PI1, k / N1)
        assert preserved[i] == pytest.approx((1 - share) * outside + share * inside, abs=1e-12)
        kept = (ranks_of(s1) > k) * 1.0
        assert removed[i] == pytest.approx(divergences.removal(l1, kept, PI1), abs=1e-12)
