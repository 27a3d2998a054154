"""Predictors of retraining are judged rightly: a perfect one, a constant one, somebody else's."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
BETAS = (0.25, 0.5, 0.75)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import predicted  # type: ignore[import-not-found]

    yield predicted


class Kept:
    """A report that keeps its values."""

    def __init__(self) -> None:
        self.values: dict[str, float] = {}

    def value(self, name: str, number: float) -> None:
        self.values[name] = number


def lists(bench: Any) -> list[Any]:
    """Two selectors with two seeds that recover as the powers 0.5 and 1 of the budget."""
    return [
        bench.List(seed, name, beta, np.arange(int(8 * beta)), beta**power, -0.1 * power * beta)
        for seed in (0, 1)
        for name, power in (("fast", 0.5), ("even", 1.0))
        for beta in BETAS
    ]


def test_a_perfect_predictor_has_no_error(bench: Any) -> None:
    found, report = lists(bench), Kept()
    perfect = np.array([[each.recovered, each.retain] for each in found])
    bench.judged(report, "p", found, perfect)
    bench.half_gaps(report, "p", found, perfect)
    values = report.values
    assert values["p_error"] == values["p_bias"] == 0
    assert values["p_within_0.5"] == pytest.approx(1)
    assert values["p_retain_0.75"] == pytest.approx(1)
    assert values["p_half_gap_error"] == values["p_pilot_error"] == pytest.approx(0)
    assert values["p_at_0.9_error"] == pytest.approx(0)
    # Straight from 0 to 0.71 at 0.5, the fast curve is at its half at 0.35 and not at 0.25.
    assert values["p_line_largest"] == pytest.approx(0.35 - 0.25, abs=5e-3)
    assert values["p_half_gap_covered"] == 1


def test_one_that_only_knows_the_budget_tells_no_lists_apart(bench: Any) -> None:
    found, report = lists(bench), Kept()
    budget = np.array([[each.beta] for each in found])
    bench.judged(report, "b", found, budget)
    bench.half_gaps(report, "b", found, budget)
    assert not [name for name in report.values if "within" in name]
    assert report.values["b_half_gap_largest"] == pytest.approx(0.25)
    assert report.values["b_half_gap_covered"] == 0.5
    # A quarter takes 0.125 where each budget below 0.25 recovers twice its share.
    assert report.values["b_at_0.25_largest"] == pytest.approx(0.125)


def test_the_ceiling_is_what_noise_leaves(bench: Any) -> None:
    found = [each for each in lists(bench) if each.beta == 0.5]
    recovered = np.array([each.recovered for each in found])
    assert bench.ceiling(found, recovered) == pytest.approx(1)
    noisy = recovered + np.array([0.2, -0.2, -0.2, 0.2])
    assert bench.ceiling(found, noisy) < 0.5


def test_predictions_of_a_file_are_those_of_its_arms(bench: Any, tmp_path: Path) -> None:
    path = tmp_path / "given.csv"
    path.write_text(
        "dataset,seed,arm,recovered\nsmall,1,retrained/even/beta0.25,0.3\n"
        "other,0,retrained/even/beta0.25,0.9\n"
    )
    found, report = lists(bench), Kept()
    given = bench.others(path, "small", found)
    assert np.isfinite(given).sum() == 1
    bench.judged(report, "g", found, given)
    assert report.values["g_error"] == pytest.approx(0.05)
