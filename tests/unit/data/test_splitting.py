"""The split: shares within each stratum and in all, groups, ready-made sections, and limits."""

from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mamushi.data.splitting import split_sections, within_limits
from tests.unit.data.test_examples import NO_LIMIT, PAPER, raw_of

GROUPS = st.sampled_from([None, *"uvwxyz"])


@given(
    st.lists(st.tuples(st.booleans(), st.sampled_from("abc"), GROUPS), min_size=1, max_size=60),
    st.lists(st.integers(0, 10), min_size=3, max_size=3).filter(any),
    st.integers(0, 3),
)
def test_split_is_stratified_and_repeatable(
    rows: list[tuple[bool, str, str | None]], parts: list[int], seed: int
) -> None:
    shares = {name: part / sum(parts) for name, part in zip(PAPER, parts, strict=True)}
    forget, strata, groups = (list(column) for column in zip(*rows, strict=True))
    raw = raw_of(strata, forget, stratum=strata)
    sections = split_sections(raw, shares, seed).tolist()
    cells = [*zip(forget, strata, strict=True)]
    counts = Counter(zip(cells, sections, strict=True))
    for (cell, size), (name, share) in product(Counter(cells).items(), shares.items()):
        assert abs(counts[cell, name] - size * share) < 1
    for domain, (name, share) in product((True, False), shares.items()):
        # So do all strata together.
        there = sum(counts[(domain, stratum), name] for stratum in "abc")
        assert abs(there - share * forget.count(domain)) < 2
    # Names of groups that nobody shares change nothing.
    assert sections == split_sections(replace(raw, group=raw.ids), shares, seed).tolist()
    grouped = replace(raw, group=groups)
    sections = split_sections(grouped, shares, seed).tolist()
    pairs = {(group, name) for group, name in zip(groups, sections, strict=True) if group}
    assert len(pairs) == len({group for group, _ in pairs})
    assert all(shares[name] > 0 for name in sections)
    assert sections == split_sections(grouped, shares, seed).tolist()


def test_limits_cap_each_domain_in_each_section_and_are_nested() -> None:
    raw = raw_of([""] * 120, [True, False] * 60)
    sections = np.repeat(np.array(list(PAPER), dtype=object), 40)
    small = within_limits(raw, sections, {"forget": 5, "retain": 30}, 0)
    assert Counter(zip(raw.forget[small], sections[small], strict=True)) == {
        (domain, name): 5 if domain else 20 for domain in (True, False) for name in PAPER
    }
    larger = within_limits(raw, sections, {"forget": 9, "retain": 30}, 0)
    assert not (small & ~larger).any()
    assert within_limits(raw, sections, NO_LIMIT, 0).all()
