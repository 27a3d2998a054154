"""Which selectors are said to differ in SAD."""

from itertools import combinations, product

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import ttest_rel

from mamushi.io import schemas
from mamushi_extras.effects.contrasts import holm
from mamushi_extras.effects.differences import sad_differences

NAMES = ("random", "mamushi", "lr_cos")
BUDGETS = (0.25, 0.5, 0.75)


def table() -> pa.Table:
    """A table ``sad``; the gold standard of seed s has a forget perplexity of 60 + s."""
    rows = []
    for seed, name, beta in product(range(5), NAMES, (0.0, *BUDGETS, 1.0)):
        height = {0.0: 40.0, 1.0: 0.0}.get(beta)
        height = noisy(seed, name, beta) if height is None else height
        gold = {"gold_ppl_forget": 60.0 + seed, "gold_ppl_retain": 10.0}
        cell = {"dataset": "alpha", "model": "small", "seed": seed, "selector": name, "beta": beta}
        ppl = {"ppl_forget": 60.0 + seed - height, "ppl_retain": 10.0}
        rows.append({**cell, **ppl, **gold, "removed": 1, "sad": height, "log_sad": 0.0})
    return pa.Table.from_pylist(rows, schema=schemas.SAD.schema)


def noisy(seed: int, name: str, beta: float) -> float:
    """Mamushi is far below random, lr_cos hardly."""
    rng = np.random.default_rng([seed, NAMES.index(name), round(100 * beta)])
    shared = np.random.default_rng([seed, 99]).normal(0, 5)
    drop = {"random": 0.0, "lr_cos": 0.05, "mamushi": 12.0}[name]
    return float(40 * (1 - beta) + shared - drop + rng.normal(0, 0.5))


def test_a_difference_is_paired_by_seed_and_corrected_for_all_pairs() -> None:
    rows = sad_differences(table()).to_pylist()
    # Two selectors at three budgets and in area, against random and the other one.
    assert len(rows) == 2 * 4 * 2
    beside_random = [row for row in rows if row["reference"] == "random"]
    heights = {
        (name, beta): np.array([noisy(seed, name, beta) for seed in range(5)])
        for name, beta in product(NAMES, BUDGETS)
    }
    pairs = [(*pair, beta) for pair in combinations(NAMES[::-1], 2) for beta in BUDGETS]
    p = [ttest_rel(heights[a, beta], heights[b, beta]).pvalue for a, b, beta in pairs]
    tested = dict(zip(pairs, zip(p, holm(p), strict=True), strict=True))
    for row in [row for row in beside_random if row["quantity"] == "sad"]:
        apart = heights[row["selector"], row["beta"]] - heights["random", row["beta"]]
        half = 2.776445 * apart.std(ddof=1) / np.sqrt(5)
        ends = row["difference_low"], row["difference_high"]
        assert ends == pytest.approx((apart.mean() - half, apart.mean() + half))
        expected = tested[row["selector"], "random", row["beta"]]
        assert (row["p"], row["p_holm"]) == pytest.approx(expected)
        assert (row["comparisons"], row["seeds"], row["other"]) == (9, 5, "random")
    # All pairs of areas.
    of_area = (row for row in beside_random if row["quantity"] == "area")
    (area,) = [row for row in of_area if row["selector"] == "mamushi"]
    assert (area["beta"], area["comparisons"], area["p_holm"] < 0.05) == (None, 3, True)
    assert area["difference"] == pytest.approx(-9, abs=1)
