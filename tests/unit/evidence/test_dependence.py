"""Texts that depend on each other: by their groups, and where near ones share their domain."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import t

from mamushi.evidence import dependence as looks
from mamushi.evidence.calibration import RatioScores
from mamushi.evidence.dependence import Dependence, dependence, z_of_pairs
from mamushi.evidence.frontier import ENDS, frontier_rows, removal_order
from mamushi.selection.metrics import NORMAL
from tests.support.score_files import scores_table


def vectors(rng: np.random.Generator, n: int, d: int, size: int, icc: float) -> np.ndarray:
    """Vectors (n, d) of which as many as ``size`` share a part."""
    shared = rng.normal(size=(n, d))[np.arange(n) // size]
    return np.sqrt(icc) * shared + np.sqrt(1 - icc) * rng.normal(size=(n, d))


@pytest.mark.parametrize("rows", [7, 1000])
def test_z_is_that_of_all_pairs_by_the_definition(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, n = np.random.default_rng(0), 50
    monkeypatch.setattr(looks, "CELLS", rows * n)
    angles = rng.normal(size=(n, 6))
    angles /= np.linalg.norm(angles, axis=1, keepdims=True)
    smooth, _ = np.linalg.qr(np.column_stack([np.ones(n), angles]))
    out = np.eye(n) - smooth @ smooth.T
    residual = out @ rng.normal(size=n)
    near = np.clip(angles @ angles.T, 0, 0.5) ** 3
    np.fill_diagonal(near, 0)
    near = out @ near @ out
    np.fill_diagonal(near, 0)
    pairs = np.outer(residual, residual)
    wanted = (near * pairs).sum() / np.sqrt(2 * (near**2 * pairs**2).sum())
    assert z_of_pairs(angles, residual, smooth) == pytest.approx(wanted)


@pytest.mark.parametrize("kind", ["normal", "wide", "few directions", "heavy tails", "topics"])
def test_of_independent_texts_few_worlds_seem_to_have_groups(kind: str) -> None:
    rng, forget, found = np.random.default_rng(0), np.arange(400) < 150, []
    d = 600 if kind == "wide" else 48
    for _ in range(20):
        x = rng.normal(size=(400, d))
        if kind == "few directions":
            x *= np.arange(1, d + 1) ** -1.0
        elif kind == "heavy tails":
            x /= np.sqrt(rng.chisquare(4, (400, 1)) / 4)
        elif kind == "topics":
            x += 1.5 * rng.normal(size=(4, d))[rng.integers(4, size=400)]
        found.append(dependence(x + forget[:, None] * np.eye(d)[0], forget))
    assert sum(one.reason is not None for one in found) <= 4
    assert {one.looked_at for one in found} == {400}


@pytest.mark.parametrize(("size", "icc"), [(2, 0.6), (5, 0.3), (20, 0.3)])
def test_groups_within_a_domain_are_seen(size: int, icc: float) -> None:
    rng, forget, seen = np.random.default_rng(0), np.arange(600) < 200, 0
    for _ in range(5):
        x = np.concatenate([vectors(rng, n, 32, size, icc) for n in (200, 400)])
        seen += dependence(x + forget[:, None] * np.eye(32)[0], forget).reason is not None
    assert seen >= 4


@pytest.mark.parametrize(
    ("z", "ends"),
    [(None, (0.8, 0.95)), (-2.0, (0.8, 0.95)), (1.0, (0.7, 0.95)), (1.7, (None, None))],
)
def test_what_near_texts_share_moves_the_lower_end_or_withholds_all(
    z: float | None, ends: tuple[float | None, float | None]
) -> None:
    assert Dependence(None, 100, z).ends(0.9, 0.8, 0.95) == pytest.approx(ends)


def test_bands_of_texts_five_times_by_groups_are_those_of_each_once() -> None:
    rng, forget = np.random.default_rng(0), np.arange(300) < 120
    score = rng.normal(size=300) + 1.5 * forget

    def band(times: int, groups: NDArray[np.int64] | None) -> tuple[float, float]:
        """The width of removal's band at half of the forget set, and of its nearer side."""
        one, s = np.repeat(forget, times), np.repeat(score, times)
        order = removal_order(scores_table(s, one))
        scores = RatioScores(s, one, np.zeros(len(s), np.int64), groups=groups)
        row = frontier_rows(scores, {"own": order}, [0.5], 150, 0)[1]
        value, low, high = (row[f"removal{end}"] for end in ENDS)
        return high - low, value - low

    once, naive, mended = band(1, None), band(5, None), band(5, np.arange(1500) // 5)
    assert mended == pytest.approx(once, rel=0.15)
    assert naive[1] < 0.85 * once[1]
    few = RatioScores(score, forget, np.zeros(300, np.int64), groups=np.arange(300) // 12)
    factor = np.sqrt(10 / 9) * t.ppf(0.975, 9) / NORMAL
    assert few.widen(0.0, np.array([-1.0, 1.0])) == pytest.approx([-factor, factor])
