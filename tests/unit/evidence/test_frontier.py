"""The frontier of all budgets in one pass, its bands against a plain loop, and its exact values."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from mamushi.evidence.calibration import LEVELS, LOSS_SLACK, RatioScores, platt
from mamushi.evidence.frontier import ENDS, Frontier, RemovalOrder, frontier_rows, removal_order
from mamushi.io.domains import INFERENCE
from mamushi.registry import plugin
from tests.support import divergences
from tests.support.divergences import preservation_by_importance
from tests.support.score_files import scores_table

N1, N2 = 60, 90
PI1 = N1 / (N1 + N2)
COUNTS = np.array([0, 6, 15, 30, 57, N1])
FORMS = ("threshold", "importance", "share")
FORGET = np.arange(N1 + N2) < N1
NO_FOLDS = np.zeros(N1 + N2, dtype=np.int64)


def normal(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Log ratios of N(1, 1) against N(-1, 1), 2x, of samples of either."""
    rng = np.random.default_rng(seed)
    return 2 * rng.normal(1, 1, N1), 2 * rng.normal(-1, 1, N2)


def order_of(form: str, s1: np.ndarray, s2: np.ndarray) -> RemovalOrder:
    seen = s2 if form == "threshold" else np.full(N2, np.nan)
    return removal_order(scores_table(np.concatenate([s1, seen]), FORGET), form == "share")


def frontier(l1: np.ndarray, l2: np.ndarray, lost: float = 0.0) -> Frontier:
    return Frontier(np.concatenate([l1, l2]), FORGET, lost)


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


def noisy_scores(seed: int = 0) -> tuple[np.ndarray, ...]:
    (l1, l2), rng = normal(seed), np.random.default_rng([seed, 1])
    return l1, l2, l1 + rng.normal(0, 1, N1), l2 + rng.normal(0, 1, N2)


@pytest.mark.parametrize("form", FORMS)
def test_all_budgets_in_one_pass_equal_one_at_a_time(form: str) -> None:
    l1, l2, s1, s2 = noisy_scores()
    removed, preserved = frontier(l1, l2).at(order_of(form, s1, s2), COUNTS)
    for i, k in enumerate(COUNTS):
        wanted = plainly(form, l1, l2, s1, s2, int(k))
        assert (removed[i], preserved[i]) == pytest.approx(wanted, abs=1e-12)
    assert preserved[-1] == pytest.approx(0, abs=1e-12)
    assert removed[-1] == pytest.approx(l1.mean())


def share(removed: np.ndarray) -> np.ndarray:
    return (removed - removed[..., :1]) / (removed[..., -1:] - removed[..., :1])


def test_bands_equal_a_plain_loop_over_resampled_examples() -> None:
    """Calibrated anew in each resample, with nothing lost, and with more than one pair of halves
    says."""
    l1, l2, s1, s2 = noisy_scores()
    score, rng = np.concatenate([l1, l2]), np.random.default_rng(3)
    noisy = [(*(score + rng.normal(size=(2, N1 + N2)) * sd), NO_FOLDS) for sd in (1, 2)]
    scores = RatioScores(score, FORGET, NO_FOLDS, noisy)
    orders = {form: order_of(form, s1, s2) for form in FORMS}
    table = frontier_rows(scores, orders, COUNTS / N1, 40, seed=7)
    rng = np.random.default_rng(7)
    drawn: dict[str, Any] = {form: {side: [] for side in ("near", *LOSS_SLACK)} for form in FORMS}
    for which in range(40):
        # An example that is drawn m times stands m times in the resample.
        rows1, rows2 = (np.sort(rng.integers(n, size=n)) for n in (N1, N2))
        rows = np.concatenate([rows1, N1 + rows2])
        pair = tuple(of[rows] for of in noisy[which % 2])
        again = RatioScores(score[rows], FORGET, NO_FOLDS, [pair])
        u = platt(again.score, FORGET, NO_FOLDS, np.ones(len(rows)))
        apart = u[:N1].mean() - u[N1:].mean()
        lost = apart * max(1 / again.estimate().kept - 1, 0)
        sides = {"near": 0.0, **{side: lost + slack * apart for side, slack in LOSS_SLACK.items()}}
        for form in FORMS:
            for side, spread in sides.items():
                at = Frontier(u, FORGET, spread)
                point = at.at(order_of(form, s1[rows1], s2[rows2]), COUNTS)
                drawn[form][side].append(np.transpose(point))
    estimate = scores.estimate()
    u = estimate.log_ratio
    for form in FORMS:
        at = Frontier(u, FORGET, estimate.lost)
        value = np.array(at.at(order_of(form, s1, s2), COUNTS))
        loops = {side: np.array(each) for side, each in drawn[form].items()}
        for name, far, what in (
            ("removal", "removal", lambda pair: pair[..., 0]),
            ("preservation", "preservation", lambda pair: pair[..., 1]),
            ("gain", "removal", lambda pair: share(pair[..., 0])),
        ):
            ends = [np.quantile(what(loops[side]), LEVELS, axis=0) for side in ("near", far)]
            point = what(value.T[None])[0]
            low = np.min([point, *(end[0] for end in ends)], axis=0)
            high = np.max([point, *(end[1] for end in ends)], axis=0)
            for end, values in zip(ENDS, (point, low, high), strict=True):
                found = [row[name + end] for row in table if row["selector"] == form]
                assert found == pytest.approx(values, abs=1e-6)
                assert name != "gain" or found[0] == 0


def test_ties_take_the_share_of_the_retain_examples_that_goes_of_the_forget_examples() -> None:
    l1, l2 = normal()
    s1, s2 = np.round(l1), np.round(l2)
    _, preserved = frontier(l1, l2).at(order_of("threshold", s1, s2), COUNTS)
    for i, k in enumerate(COUNTS[1:-1], start=1):
        threshold = np.sort(s1)[::-1][k - 1]
        share = (k - np.sum(s1 > threshold)) / np.sum(s1 == threshold)
        outside = divergences.preservation(l2, (s2 <= threshold) * 1.0, PI1, k / N1)
        inside = divergences.preservation(l2, (s2 < threshold) * 1.0, PI1, k / N1)
        assert preserved[i] == pytest.approx((1 - share) * outside + share * inside, abs=1e-12)


# By the exact ratio -------------------------------------------------------------------------------

ROOT = Path(__file__).parents[3]
LAB = "studies/lab/config.yaml"
WORLDS = [
    ("profiles/demo/science.yaml", "synthetic"),
    *((LAB, name) for name in ("lexical", "transition", "semantic")),
]


def drawn(place: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Exact log ratios and labels of the texts that are ranked of a world."""
    config = yaml.safe_load((ROOT / place).read_text(encoding="utf-8"))["datasets"][name]
    settings: dict[str, Any] = {**plugin("dataset", "synthetic").defaults, **config}
    raw = plugin("dataset", "synthetic").code.load(settings, Path())
    ranked = np.array(raw.section) == INFERENCE
    return np.asarray(raw.log_density_ratio)[ranked], np.asarray(raw.forget)[ranked]


def curves(log_ratio: np.ndarray, forget: np.ndarray, **scores: np.ndarray) -> dict[str, Any]:
    """Removal and preservation of selectors at every count (2, n1 + 1)."""
    exact, counts = Frontier(log_ratio, forget), np.arange(int(forget.sum()) + 1)
    orders = {n: removal_order(scores_table(s, forget), n == "chance") for n, s in scores.items()}
    return {n: exact.at(order._replace(region=None), counts) for n, order in orders.items()}


@pytest.mark.parametrize(("place", "name"), WORLDS)
def test_nothing_beats_the_oracle_by_the_truth(place: str, name: str) -> None:
    """Proposition "optimal selection", for every count."""
    log_ratio, forget = drawn(place, name)
    noise = np.random.default_rng(0).normal(size=(3, len(forget)))
    scores = {
        "oracle": log_ratio,
        "noisy": 3 * log_ratio + noise[0],
        "flat": np.tanh(log_ratio) + noise[1],
        "reverse": -log_ratio,
        "chance": noise[2],
    }
    found = curves(log_ratio, forget, **scores)
    oracle = found.pop("oracle")
    for other, curve in found.items():
        assert (oracle[0] >= curve[0] - 1e-12).all()
        # A share of all is no region, and a thin one left behind harms less.
        upto = int((0.96 if other == "chance" else 1.0) * forget.sum()) + 1
        assert (oracle[1] <= curve[1] + 1e-12)[:upto].all()
        assert (oracle[0] > curve[0] + 1e-3).any()
