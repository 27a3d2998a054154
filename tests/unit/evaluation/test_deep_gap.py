"""Budgets of the gap without word frequencies: from files, and in worlds of known truth."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mamushi.evaluation.crossed import NO_GAP
from mamushi.evaluation.deep_gap import DeepScale, deep_gaps
from mamushi.evaluation.half_gap import half_gap_table, synergy, unlearning_table
from tests.support.unlearning_files import AXES, sweeps_of, write_runs

BETA = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
TRUE = 0.4
"""Where half of the gap is recovered."""
Doubles = NDArray[np.float64]


def world(rng: np.random.Generator, seeds: int, gap: float = 0.2) -> tuple[DeepScale, Doubles]:
    """Models that recover in proportion, of texts that differ in how much they are of the domain,
    in seeds that differ in how much they learn of it."""
    n, tokens = 80, rng.integers(8, 30, 80).astype(float)
    opens = gap + 0.2 * rng.normal(size=n)

    def model(share: float) -> Doubles:
        own = share + 0.03 * rng.normal(size=(seeds, 1))
        return (3 + own * opens + 0.03 * rng.normal(size=(seeds, n))) * tokens

    scale = DeepScale(model(0.0), model(1.0), tokens)
    between = [model(0.5 / TRUE * beta) for beta in BETA[1:]]
    return scale, np.array([scale.start, *between])


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [2, 4])
def test_the_interval_of_a_budget_holds_the_truth(seeds: int) -> None:
    rng, held, times = np.random.default_rng(seeds), 0, 100
    for _ in range(times):
        scale, nll = world(rng, seeds)
        assert scale.why_not() is None
        row = scale.crossing(BETA, nll, 0.5)
        high = np.inf if row["deep_budget_high"] is None else row["deep_budget_high"]
        held += row["deep_budget_low"] <= TRUE <= high
    assert held >= 0.93 * times - 7  # three errors of 100 draws


def test_a_gap_that_chance_may_have_made_has_no_budget() -> None:
    scale, _ = world(np.random.default_rng(1), 3, gap=0.0)
    assert scale.why_not() == NO_GAP


def gaps(root: Path, start: str = "beta0") -> Any:
    return deep_gaps(AXES, {"small": start}, sweeps_of(AXES), 0.5, root)


def test_shares_and_budgets_stand_in_the_tables(tmp_path: Path) -> None:
    write_runs(tmp_path, AXES)
    shares, deep = gaps(tmp_path)
    axes = AXES, {"small": "beta0"}, sweeps_of(AXES)
    points = unlearning_table(*axes, tmp_path, shares)
    for row in points.to_pylist():
        part = 1.0 if row["unlearner"] == "retraining" and row["beta"] == 1 else 0.6
        assert row["deep"] == pytest.approx(part * row["recovery"], abs=0.03)
        of_gold = abs(row["ppl_forget"] - 60) + abs(row["ppl_retain"] - 12)
        assert row["sad"] == pytest.approx(of_gold)
    table = half_gap_table(points, target=0.5, retain_cap=5.6, deep=deep)
    rows = {(row["unlearner"], row["selector"]): row for row in table.to_pylist()}
    ours = rows["neggrad_plus", "mamushi"]
    # 0.456 of it at a budget of 0.5, and 0.6 at 1.
    assert ours["deep_budget"] == pytest.approx(0.5 + 0.5 * 0.044 / 0.144, abs=0.05)
    assert ours["deep_budget_low"] < ours["deep_budget"] < ours["deep_budget_high"]
    assert ours["deep_budget"] > ours["budget"] + 0.2
    assert (ours["deep_censored"], ours["deep_withheld"]) == (False, None)
    assert "; deep " in synergy(table).replace("\\", "")
