"""Half-gap budgets, their intervals and savings, and the budgets that are measured next."""

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_1samp

from mamushi.evaluation.half_gap import (
    HALF_GAPS,
    Crossing,
    finer_budgets,
    first_crossing,
    half_gap_table,
    saving_columns,
    savings_table,
    unlearning_table,
)
from mamushi.io import schemas
from tests.support.unlearning_files import AXES, N_FORGET, N_RETAIN, sweeps_of, write_runs
from tests.unit.evaluation.test_sad import rows

BETA = [0.0, 0.25, 0.5, 0.75, 1.0]
MONOTONE = [0.0, 0.2, 0.4, 0.8, 1.0]
DIPS = [0.0, 0.6, 0.4, 0.7, 0.2]

CURVES = [
    # height, crossing, what a step of 0.05 adds
    (MONOTONE, 0.5 + 0.25 * 0.1 / 0.4, [0.55, 0.6, 0.65, 0.7]),
    (DIPS, 0.25 * 0.5 / 0.6, [0.05, 0.1, 0.15, 0.2]),
    ([0.0, 0.1, 0.3, 0.2, 0.4], None, []),
    ([0.0, 0.2, 0.5, 0.8, 1.0], 0.5, [0.3, 0.35, 0.4, 0.45]),
    ([0.5, 0.6, 0.7, 0.8, 1.0], 0.0, []),
]
Shares = Callable[[str, str, int], list[float]]
"""(unlearner, selector, seed) -> recovery at each of ``BETA``."""


def points(
    shares: Shares,
    *,
    seeds: int = 3,
    selectors: tuple[str, ...] = ("random", "mamushi"),
    unlearners: tuple[str, ...] = ("salun",),
    gold: Callable[[int], float] = lambda seed: 60.0,
    models: tuple[str, ...] = ("small",),
    dataset: str = "alpha",
) -> pa.Table:
    """A table ``unlearning`` with these curves; every seed starts at 20."""
    rows = [
        {
            **{"dataset": dataset, "model": model, "seed": seed},
            **{"unlearner": unlearner, "selector": selector, "beta": beta},
            **{"removed": int(beta * 100), "steps": 1},
            "ppl_forget": 20 + share * (gold(seed) - 20),
            "ppl_retain": 10.0,
            **{"start_ppl_forget": 20.0, "start_ppl_retain": 10.0 * (1 + seed)},
            **{"gold_ppl_forget": gold(seed), "gold_ppl_retain": 9.0},
            "recovery": share if gold(seed) > 20 else None,
        }
        for model, seed, unlearner, selector in product(models, range(seeds), unlearners, selectors)
        for beta, share in zip(BETA, shares(unlearner, selector, seed), strict=True)
    ]
    return pa.Table.from_pylist(rows, schema=schemas.UNLEARNING.schema)


def half_gap(table: pa.Table) -> pa.Table:
    return half_gap_table(table, target=0.5, retain_cap=5.6)


def lines(unlearner: str, selector: str, seed: int) -> list[float]:
    """Random crosses at 0.5 + 0.1 seed, mamushi in half of that, each on a straight line."""
    slope = 0.5 / (0.5 + 0.1 * seed) * (2 if selector == "mamushi" else 1)
    return [beta * slope for beta in BETA]


@pytest.mark.parametrize(("height", "crossing", "added"), CURVES)
def test_crossings_and_refinement_of_given_curves(
    height: list[float], crossing: float | None, added: list[float]
) -> None:
    place = first_crossing(BETA, height, 0.5)
    assert place == (crossing if crossing is None else pytest.approx(crossing, abs=1e-12))
    # Equal, not close: these become file names.
    assert finer_budgets(BETA, height, 0.5, 0.05) == added
    assert finer_budgets(BETA, MONOTONE, 0.5, 0.07) == [0.56, 0.63, 0.7]


@st.composite
def sweeps(draw: st.DrawFn) -> tuple[list[float], list[float], float, dict[int, float]]:
    """Measured budgets, a step, and the true heights at every hundredth."""
    inner = draw(st.sets(st.integers(1, 99), max_size=9))
    hundredths = [0, *sorted(inner), 100]
    heights = draw(st.lists(st.floats(-0.5, 1.5), min_size=101, max_size=101))
    truth = dict(enumerate(heights))
    fine = draw(st.integers(1, 60)) / 100
    return [k / 100 for k in hundredths], [truth[k] for k in hundredths], fine, truth


@given(sweeps())
def test_the_refined_curve_crosses_in_the_same_bracket(
    sweep: tuple[list[float], list[float], float, dict[int, float]],
) -> None:
    beta, height, fine, truth = sweep
    before = first_crossing(beta, height, 0.5)
    added = finer_budgets(beta, height, 0.5, fine)
    if before is None or before == 0:
        assert added == []
        return
    assert not set(added) & set(beta)
    all_of_them = sorted({*beta, *added})
    after = first_crossing(all_of_them, [truth[round(b * 100)] for b in all_of_them], 0.5)
    low = max(b for b, h in zip(beta, height, strict=True) if b < before and h < 0.5)
    high = min(b for b in beta if b >= before)
    assert after is not None
    assert low <= after <= high
    assert all(low < b < high for b in added)
    assert [round(b * 100) % round(fine * 100) for b in added] == [0] * len(added)
    # The step leaves no wider gap than itself in the bracket.
    inside = [low, *added, high]
    assert np.diff(inside).max() <= fine + 1e-9


def test_the_papers_table_of_savings() -> None:
    """Budgets as in the paper's table of synergy; 36 against 40 is 10%, not the 11% it prints. They
    stand beside its own dataset and model alone."""
    straight: Shares = lambda u, s, _: [0.5 * beta / HALF_GAPS[u][s] for beta in BETA]  # noqa: E731
    axes: Any = {"selectors": ("random", "coreset", "mamushi"), "unlearners": tuple(HALF_GAPS)}
    models = ("qwen-2.5-7b", "gemma-2-2b")
    both = half_gap(points(straight, seeds=1, models=models, dataset="newsgroups", **axes))
    assert both["paper_budget"].null_count == len(both) / 2
    table = both.filter(pc.equal(both["model"], "qwen-2.5-7b"))
    ends = ("budget_low", "budget_high", "saving_vs_random_low", "saving_vs_random_high")
    for row in table.to_pylist():
        assert row["budget"] == pytest.approx(row["paper_budget"])
        assert row["paper_budget"] == HALF_GAPS[row["unlearner"]][row["selector"]]
        # One seed has no interval.
        assert {row[name] for name in ends} == {None}
    ours = rows(table, selector="mamushi")
    assert [round(100 * r["saving_vs_random"]) for r in ours] == [61, 66, 10]
    printed = savings_table(table).to_pylist()
    keys = ("random", "coreset", "mamushi", "vs_full", "vs_random")
    assert [row["unlearner"] for row in printed] == [*HALF_GAPS]
    assert [[round(100 * row[key]) for key in keys] for row in printed] == [
        [62, 64, 24, 76, 61],
        [61, 26, 21, 79, 66],
        [40, 35, 36, 64, 10],
    ]


def test_the_budget_is_that_of_the_mean_curve_of_shares() -> None:
    # Seeds of very different gaps count the same: shares are averaged, not perplexities.
    table = half_gap(points(lines, gold=lambda seed: 20.0 + 10.0**seed))
    (chance,) = rows(table, selector="random")
    slope = np.mean([0.5 / (0.5 + 0.1 * seed) for seed in range(3)])
    assert chance["budget"] == pytest.approx(0.5 / slope)
    assert chance["seeds"] == 3
    assert chance["target_ppl_forget"] == pytest.approx(20 + 111 / 6)
    # Mamushi needs half of random in every seed: budgets vary, the saving does not.
    (ours,) = rows(table, selector="mamushi")
    assert (ours["budget_high"] or 1) - ours["budget_low"] > 0.02
    ends = [ours[f"saving_vs_random{end}"] for end in ("", "_low", "_high")]
    assert ends == pytest.approx([0.5] * 3)


def test_a_saving_ends_where_a_t_test_tells_the_budgets_apart() -> None:
    budget, chance = np.array([0.2, 0.25, 0.32, 0.22]), np.array([0.5, 0.42, 0.6, 0.55])
    at, other = (Crossing(float(x.mean()), by_seed=x) for x in (budget, chance))
    value, low, high = saving_columns(at, other).values()
    assert low < value < high
    for end in (low, high):
        assert ttest_1samp(budget - (1 - end) * chance, 0).pvalue == pytest.approx(0.05)
    # A mean that may as well be 0 bounds no ratio.
    assert len(saving_columns(at, Crossing(0.3, by_seed=np.array([0.0, 1.0, 0.0, 0.1])))) == 1


def test_censored_curves_have_no_budget_and_no_saving() -> None:
    def low(unlearner: str, selector: str, seed: int) -> list[float]:
        return [beta * (0.4 if selector == "random" else 0.8) for beta in BETA]

    budgets = half_gap(points(low))
    chance, ours = rows(budgets)
    names = ("budget", "budget_low", "budget_high", "retain_factor", "within_cap")
    assert chance["censored"] and {chance[name] for name in names} == {None}
    assert ours["budget"] == pytest.approx(0.625)
    assert ours["saving_vs_random"] is ours["saving_vs_random_low"] is None
    (row,) = savings_table(budgets).to_pylist()
    assert (row["random"], row["coreset"], row["vs_random"]) == (None, None, None)
    assert row["mamushi"] + row["vs_full"] == pytest.approx(1)


def test_seeds_without_a_gap_are_left_out() -> None:
    one_flat = half_gap(points(lines, gold=lambda seed: 20.0 if seed == 1 else 60.0))
    chance = rows(one_flat, selector="random")[0]
    assert (chance["seeds"], chance["gold_ppl_forget"]) == (2, 60.0)
    assert chance["budget"] == pytest.approx(0.5 / np.mean([1, 0.5 / 0.7]))
    all_flat = half_gap(points(lines, gold=lambda seed: 20.0 - seed))
    for row in all_flat.to_pylist():
        assert (row["seeds"], row["censored"], row["budget"]) == (0, True, None)
        assert (row["start_ppl_forget"], row["gold_ppl_forget"]) == (20.0, 19.0)


def test_curves_from_files_start_at_beta_0(tmp_path: Path) -> None:
    write_runs(tmp_path, AXES, added=(0.35,), stopped_at=7)
    table = unlearning_table(AXES, {"small": "beta0"}, sweeps_of(AXES, (0.35,)), tmp_path)
    assert table.num_rows == 3 * 2 * (4 + 5)
    retrained = rows(table, unlearner="retraining", selector="random", seed=1)
    assert [r["beta"] for r in retrained] == [0, 0.25, 0.5, 1]
    assert [r["removed"] for r in retrained] == [0, 10, 20, N_FORGET]
    assert [r["steps"] for r in retrained] == [240, 220, 200, 2 * N_RETAIN]
    assert {r["stopped_at"] for r in retrained} == {None}
    assert [r["recovery"] for r in retrained] == pytest.approx([0, 0.26, 0.51, 1])
    unlearned = rows(table, unlearner="neggrad_plus", selector="mamushi", seed=1)
    assert [r["beta"] for r in unlearned] == [0, 0.25, 0.35, 0.5, 1]
    assert [r["steps"] for r in unlearned] == [0, 25, 35, 50, 100]
    assert [r["stopped_at"] for r in unlearned] == [None, 7, 7, 7, None]
    for row in table.to_pylist():
        of_gold = abs(row["ppl_forget"] - 60) + abs(row["ppl_retain"] - 12)
        assert row["sad"] == pytest.approx(of_gold)
    budgets = half_gap_table(table, target=0.5, retain_cap=5.6)
    (ours,) = rows(budgets, unlearner="neggrad_plus", selector="mamushi")
    # On the mean over seeds, between 0.385 at 0.25 and 0.535 at 0.35.
    place = 0.25 + 0.1 * 0.115 / 0.15
    assert ours["budget"] == pytest.approx(place)
    assert ours["retain_factor"] == pytest.approx((10 + 40 * place) / 10)
