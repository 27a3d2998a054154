"""The split: shares within each stratum and in all, ready-made sections, and limits."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mamushi.data.sections import LABEL, apportion, limited, plant, split
from mamushi.errors import UserError
from mamushi.io import schemas

PAPER = {"contamination": 0.4, "inference": 0.4, "evaluation": 0.2}
NO_LIMIT = {"forget": None, "retain": None}
SHARES = st.lists(st.integers(0, 10), min_size=3, max_size=3).filter(any)


def to_shares(parts: list[int]) -> dict[str, float]:
    return {name: part / sum(parts) for name, part in zip(PAPER, parts, strict=True)}


@given(st.lists(st.integers(0, 40), min_size=1, max_size=40), SHARES)
def test_apportion_meets_the_shares_in_each_stratum_and_in_all(
    sizes: list[int], parts: list[int]
) -> None:
    shares = np.array(parts) / sum(parts)
    owed, total = np.zeros(3), np.zeros(3)
    for n in sizes:
        counts, owed = apportion(n, shares, owed)
        assert counts.sum() == n
        assert (counts >= 0).all()
        assert (np.abs(counts - n * shares) < 1).all()
        total += counts
    np.testing.assert_allclose(owed, sum(sizes) * shares - total, atol=1e-6)
    assert (np.abs(owed) < 2).all()


def test_many_small_strata_still_fill_every_section() -> None:
    n = 1000
    sections = split(np.ones(n, dtype=bool), [str(i) for i in range(n)], [None] * n, PAPER, 0)
    assert Counter(sections) == {"contamination": 400, "inference": 400, "evaluation": 200}


@given(
    st.lists(st.tuples(st.booleans(), st.sampled_from("abc")), min_size=1, max_size=60),
    SHARES,
    st.integers(0, 3),
)
def test_split_is_stratified_complete_and_repeatable(
    rows: list[tuple[bool, str]], parts: list[int], seed: int
) -> None:
    forget, strata = np.array([f for f, _ in rows]), [s for _, s in rows]
    shares = to_shares(parts)
    sections = split(forget, strata, [None] * len(rows), shares, seed)
    for group, size in Counter(rows).items():
        counts = Counter(s for s, row in zip(sections, rows, strict=True) if row == group)
        assert sum(counts.values()) == size
        for name, share in shares.items():
            assert abs(counts[name] - size * share) < 1
    again = split(forget, strata, [None] * len(rows), shares, seed)
    assert sections.tolist() == again.tolist()


def test_a_stratum_does_not_depend_on_the_others() -> None:
    alone = split(np.ones(20, dtype=bool), ["a"] * 20, [None] * 20, PAPER, 0)
    strata = ["a"] * 20 + ["b"] * 10
    both = split(np.ones(30, dtype=bool), strata, [None] * 30, PAPER, 0)
    assert both[:20].tolist() == alone.tolist()


def test_ready_made_sections_are_kept_and_the_rest_is_split() -> None:
    ready = ["evaluation"] * 5 + [None] * 10
    shares = {"contamination": 0.5, "inference": 0.5}
    sections = split(np.ones(15, dtype=bool), ["a"] * 15, ready, shares, 0)
    assert sections[:5].tolist() == ["evaluation"] * 5
    assert Counter(sections[5:]) == {"contamination": 5, "inference": 5}


def test_shares_are_not_needed_when_all_sections_are_ready() -> None:
    assert split(np.ones(1, dtype=bool), ["a"], ["inference"], {}, 0).tolist() == ["inference"]


def test_limits_cap_each_domain_in_each_section_and_are_nested() -> None:
    forget = np.tile([True, False], 60)
    sections = np.repeat(np.array(list(PAPER), dtype=object), 40)
    small = limited(forget, sections, {"forget": 5, "retain": 30}, 0)
    assert Counter(zip(forget[small], sections[small], strict=True)) == {
        (domain, name): 5 if domain else 20 for domain in (True, False) for name in PAPER
    }
    larger = limited(forget, sections, {"forget": 9, "retain": 30}, 0)
    assert not (small & ~larger).any()
    assert limited(forget, sections, NO_LIMIT, 0).all()


# Planted texts --------------------------------------------------------------------------------


def examples(forget: int = 40) -> pa.Table:
    rows = [
        (f"{section[0]}{domain[0]}{i}", domain, section)
        for section in PAPER
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
            "group": pa.nulls(len(rows), pa.string()),
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
    ],
    ids=["too few", "no section"],
)
def test_what_cannot_be_planted(table: pa.Table, planted: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        plant(table, planted, 0)
