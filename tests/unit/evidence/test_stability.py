"""How often a text is listed, and what of a list a second run or another selector lists."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from mamushi.evidence.stability import rankings, stability_columns
from mamushi.io import schemas
from mamushi.selection.pool import Scored

IDS = ["a", "b", "r", "c", "d"]
"""``r`` is the retain text."""


def scores_table(values: list[float]) -> pa.Table:
    forget = [i for i, name in enumerate(IDS) if name != "r"]
    order = sorted(forget, key=lambda i: -values[i])
    return pa.table(
        {
            "id": IDS,
            "domain": ["retain" if name == "r" else "forget" for name in IDS],
            "score": values,
            "rank": [order.index(i) + 1 if i in order else None for i in range(5)],
            "fold": pa.nulls(5, pa.int16()),
        },
        schema=schemas.SCORES.schema,
    )


def test_frequencies_and_overlaps_by_hand() -> None:
    scores = scores_table([4.0, 3.0, 9.0, 2.0, 1.0])
    again = [
        ("whole", 0, Scored(np.array([4.0, 1.0, 9.0, 3.0, 2.0]))),  # a c d b
        ("whole", 1, Scored(np.array([1.0, 1.0, 9.0, 1.0, 1.0]))),  # ties by id: a b c d
        ("half_a", 0, Scored(np.array([0.0, 0.0, 9.0, 0.0, 5.0]))),  # no complete run
    ]
    ids, ranks = rankings(scores, again)
    assert ids == ["a", "b", "c", "d"]
    assert ranks.tolist() == [[1, 2, 3, 4], [1, 4, 2, 3], [1, 2, 3, 4]]
    columns, told = stability_columns(ids, ranks, [0.1, 0.5, 0.75])
    assert told["rankings"] == 3
    assert told["spearman"] == {"mean": pytest.approx(0.7), "least": pytest.approx(0.4)}
    none = {"expected_overlap": None, "least_overlap": None, "surely": 0, "toss_up": 0}
    half = {"expected_overlap": 0.75, "least_overlap": 0.5, "surely": 1, "toss_up": 1}
    assert told["budgets"]["0.10"] == none
    assert told["budgets"]["0.50"] == half
    assert told["budgets"]["0.75"]["expected_overlap"] == pytest.approx(5 / 6)
    keys = zip(columns["beta"], columns["id"], strict=True)
    frequency = dict(zip(keys, columns["frequency"], strict=True))
    assert frequency[0.5, "a"] == 1
    assert frequency[0.5, "b"] == pytest.approx(2 / 3)
    assert frequency[0.5, "c"] == pytest.approx(1 / 3)
    assert frequency[0.5, "d"] == 0
    assert columns["rank"].tolist() == [1, 2, 3, 4] * 3
