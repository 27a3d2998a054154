"""Which selectors are said to differ: numbers by hand, and false discoveries where none do."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import ttest_rel

from mamushi.evaluation.summary import sad_differences
from mamushi.io import schemas

NAMES = ("random", "mamushi", "lr_cos")
BUDGETS = (0.25, 0.5, 0.75)
Heights = Callable[[int, str, float], float]
"""(seed, selector, budget) -> SAD, all of it in the forget domain."""


def table(
    heights: Heights,
    *,
    seeds: int = 5,
    names: tuple[str, ...] = NAMES,
    model: str = "small",
) -> pa.Table:
    """A table ``sad``; the gold standard of seed s has a forget perplexity of 60 + s."""
    rows = []
    for seed, name, beta in product(range(seeds), names, (0.0, *BUDGETS, 1.0)):
        height = {0.0: 40.0, 1.0: 0.0}.get(beta)
        height = heights(seed, name, beta) if height is None else height
        gold = {"gold_ppl_forget": 60.0 + seed, "gold_ppl_retain": 10.0}
        cell = {"dataset": "alpha", "model": model, "seed": seed, "selector": name, "beta": beta}
        ppl = {"ppl_forget": 60.0 + seed - height, "ppl_retain": 10.0}
        rows.append({**cell, **ppl, **gold, "removed": 1, "sad": height, "log_sad": 0.0})
    return pa.Table.from_pylist(rows, schema=schemas.SAD.schema)


def noisy(seed: int, name: str, beta: float) -> float:
    """Mamushi is far below random, lr_cos hardly."""
    rng = np.random.default_rng([seed, NAMES.index(name), round(100 * beta)])
    shared = np.random.default_rng([seed, 99]).normal(0, 5)
    drop = {"random": 0.0, "lr_cos": 0.05, "mamushi": 12.0}[name]
    return float(40 * (1 - beta) + shared - drop + rng.normal(0, 0.5))


def rows(found: pa.Table, **wanted: Any) -> list[dict[str, Any]]:
    return [r for r in found.to_pylist() if all(r[k] == v for k, v in wanted.items())]


def test_a_difference_is_paired_by_seed_and_corrected_for_all_pairs() -> None:
    found = sad_differences(table(noisy))
    # Two selectors at three budgets and in area, against random and the other one.
    assert found.num_rows == 2 * 4 * 2
    p = {}
    for beta in BUDGETS:
        sad = {name: np.array([noisy(s, name, beta) for s in range(5)]) for name in NAMES}
        for one, other in (("mamushi", "random"), ("lr_cos", "random"), ("mamushi", "lr_cos")):
            p[one, other, beta] = ttest_rel(sad[one], sad[other]).pvalue
    ranked = sorted(p, key=lambda key: float(p[key]))
    corrected, highest = {}, 0.0
    for place, key in enumerate(ranked):
        highest = max(highest, min(1.0, float(p[key]) * (9 - place)))
        corrected[key] = highest
    for row in rows(found, quantity="sad", reference="random"):
        key = (row["selector"], "random", row["beta"])
        differences = [
            noisy(s, row["selector"], row["beta"]) - noisy(s, "random", row["beta"])
            for s in range(5)
        ]
        assert row["difference"] == pytest.approx(np.mean(differences))
        half = 2.776445 * np.std(differences, ddof=1) / np.sqrt(5)
        ends = row["difference_low"], row["difference_high"]
        assert ends == pytest.approx((np.mean(differences) - half, np.mean(differences) + half))
        assert (row["p"], row["p_holm"]) == pytest.approx((p[key], corrected[key]))
        assert (row["comparisons"], row["seeds"], row["other"]) == (9, 5, "random")
    # All pairs of areas.
    assert {row["comparisons"] for row in rows(found, quantity="area")} == {3}
    (area,) = rows(found, quantity="area", reference="random", selector="mamushi")
    assert area["beta"] is None
    assert area["p_holm"] < 0.05
    assert area["difference"] == pytest.approx(-9, abs=1)


@pytest.mark.parametrize("seeds", [3, 10])
def test_models_that_differ_in_the_seed_alone_are_hardly_ever_said_to_differ(
    seeds: int,
) -> None:
    """All selectors' models are gold standards of other seeds: SAD is noise, near 0, and shares
    what a seed shares. Any claim on a curve, or on an area, is false."""
    times = 200
    wrong = {"sad": 0, "area": 0}
    for time in range(times):
        rng = np.random.default_rng([seeds, time])
        gold = rng.normal(0, 1, (seeds, 2))
        noise = rng.normal(0, 1, (seeds, len(NAMES), len(BUDGETS), 2))

        def distance(seed: int, name: str, beta: float) -> float:
            own = noise[seed, NAMES.index(name), BUDGETS.index(beta)]  # noqa: B023
            return float(np.abs(own - gold[seed]).sum())  # noqa: B023

        found = sad_differences(table(distance, seeds=seeds)).to_pylist()
        for quantity in wrong:
            wrong[quantity] += any(
                row["p_holm"] <= 0.05 for row in found if row["quantity"] == quantity
            )
    # Two and a half standard errors above 5% of 200.
    assert max(wrong.values()) <= 0.0885 * times
    assert sum(wrong.values()) > 0, "the test never errs, so it has no power either"
