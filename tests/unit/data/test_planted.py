"""Planted texts: where they are, how often, and that chance alone says which."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mamushi.artifacts import schemas
from mamushi.data.sections import LABEL, plant
from mamushi.errors import UserError

SECTIONS = ("contamination", "inference", "evaluation")


def examples(forget: int = 40) -> pa.Table:
    rows = [
        (f"{section[0]}{domain[0]}{i}", domain, section)
        for section in SECTIONS
        for domain, count in (("forget", forget), ("retain", 20))
        for i in range(count)
    ]
    ids, domains, sections = zip(*rows, strict=True)
    return pa.table(
        {
            "id": pa.array(ids, pa.string()),
            "text": pa.array([f"text {name}" for name in ids], pa.string()),
            "domain": pa.array(domains, pa.string()),
            "section": pa.array(sections, pa.string()),
            "log_density_ratio": pa.array(np.arange(len(rows)), pa.float64()),
        },
        schema=schemas.EXAMPLES.schema,
    )


def rows(table: pa.Table) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in table.to_pylist()}


def test_planted_texts_are_copied_into_contamination_and_others_are_held_out() -> None:
    before = rows(examples())
    table = plant(examples(), {"texts": 5, "repeats": [1, 4]}, 0)
    after = rows(table)
    assert len(after) == len(table) == len(before) + 5 * (1 + 4)
    # All that was there is there still, in its place.
    assert [*after][: len(before)] == [*before]
    marked = {name: row[LABEL] for name, row in after.items() if row[LABEL] is not None}
    own = {name: often for name, often in marked.items() if name in before}
    assert Counter(own.values()) == {1: 5, 4: 5, 0: 10}
    for name, often in own.items():
        assert before[name]["section"] == "inference"
        assert before[name]["domain"] == "forget"
        assert after[name]["section"] == ("inference" if often else "evaluation")
    copies = [row for name, row in after.items() if name not in before]
    for row in copies:
        one = after[row["id"].partition("#")[0]]
        assert row == {**one, "id": row["id"], "section": "contamination"}
    often = Counter(row["id"].partition("#")[0] for row in copies)
    assert often == {name: count for name, count in own.items() if count}
    unmarked = before.keys() - own.keys()
    assert {name: after[name] | {LABEL: None} for name in unmarked} == {
        name: before[name] | {LABEL: None} for name in unmarked
    }


def test_which_are_planted_is_drawn_by_the_seed() -> None:
    def drawn(seed: int) -> dict[str, int]:
        table = plant(examples(), {"texts": 3, "repeats": [2]}, seed)
        return {row["id"]: row[LABEL] for row in table.to_pylist() if row[LABEL] is not None}

    assert drawn(0) == drawn(0)
    assert drawn(0) != drawn(1)


@pytest.mark.parametrize(
    ("table", "planted", "message"),
    [
        (examples(forget=12), {"texts": 3, "repeats": [1, 4]}, "takes 12 of the 12 forget texts"),
        (
            examples().filter(pa.compute.not_equal(examples()["section"], "contamination")),
            {"texts": 1, "repeats": [1]},
            "no contamination section",
        ),
        (
            examples().append_column(LABEL, pa.array(["yes"] * 180)),
            {"texts": 1, "repeats": [1]},
            "label 'planted' already",
        ),
    ],
    ids=["too few", "no section", "label"],
)
def test_what_cannot_be_planted(table: pa.Table, planted: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        plant(table, planted, 0)
