"""The agreement of rankings against scipy and plain sets, and its stage."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import kendalltau, spearmanr

from mamushi.evidence.agreement import agreement_rows
from tests.support.score_files import ranks_of

BUDGETS = [0.5, 0.1, 0.01]


def rankings(n: int = 40) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    base = rng.normal(size=n)
    scores = {"a": base, "b": base + 0.5 * rng.normal(size=n), "c": -base, "d": rng.random(n)}
    return {name: ranks_of(score) for name, score in scores.items()}


def test_pairs_by_an_independent_count() -> None:
    ranks = rankings()
    rows = agreement_rows(ranks, BUDGETS)
    pairs = [*combinations("abcd", 2)]
    assert [(row["first"], row["second"]) for row in rows] == [p for p in pairs for _ in range(3)]
    assert [row["beta"] for row in rows[:3]] == [0.01, 0.1, 0.5]
    for row in rows:
        one, two = ranks[row["first"]], ranks[row["second"]]
        assert row["spearman"] == pytest.approx(spearmanr(one, two).statistic, abs=1e-12)
        assert np.sign(row["spearman"]) == np.sign(kendalltau(one, two).statistic)
        first, second = (set(np.argsort(r)[: row["removed"]]) for r in (one, two))
        assert row["removed"] == int(row["beta"] * 40)
        shared = len(first & second) / len(first) if first else None
        assert row["shared"] == (None if shared is None else pytest.approx(shared))
    reverse = [row for row in rows if (row["first"], row["second"]) == ("a", "c")]
    assert [(row["spearman"], row["shared"]) for row in reverse] == [
        (pytest.approx(-1), None), (pytest.approx(-1), 0), (pytest.approx(-1), 0),
    ]  # fmt: skip
