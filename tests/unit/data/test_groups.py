"""Groups of texts that are not independent: threads and columns, and sections that keep them."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mamushi.data.loaders import newsgroups
from mamushi.data.splitting import split_sections
from tests.unit.data.test_examples import PAPER, raw_of


def straddling(where: Any, groups: list[str | None]) -> int:
    """How many groups are in two places."""
    pairs = {(g, w) for g, w in zip(groups, where, strict=True) if g is not None}
    return sum(count > 1 for count in Counter(g for g, _ in pairs).values())


@given(
    st.lists(
        st.tuples(st.booleans(), st.sampled_from("ab"), st.sampled_from([None, *"uvwxyz"])),
        min_size=1,
        max_size=60,
    ),
    st.lists(st.integers(0, 10), min_size=3, max_size=3).filter(any),
    st.integers(0, 3),
)
def test_no_group_straddles_sections(
    rows: list[tuple[bool, str, str | None]], parts: list[int], seed: int
) -> None:
    forget, strata, groups = (list(column) for column in zip(*rows, strict=True))
    shares = {name: part / sum(parts) for name, part in zip(PAPER, parts, strict=True)}
    raw = raw_of(strata, forget, stratum=strata)
    grouped = replace(raw, group=groups)
    sections = split_sections(grouped, shares, seed)
    assert straddling(sections, groups) == 0
    assert {shares[name] > 0 for name in sections} == {True}
    assert sections.tolist() == split_sections(grouped, shares, seed).tolist()
    # Names of groups that nobody shares change nothing.
    alone = replace(raw, group=raw.ids)
    assert (
        split_sections(raw, shares, seed).tolist() == split_sections(alone, shares, seed).tolist()
    )


@pytest.mark.parametrize(
    ("subject", "thread"),
    [
        ("Re: The  Title", "the title"),
        ("RE: re^2: Re[3]: Fwd: The Title", "the title"),
        ("Re: The Title (was Re: Another)", "the title"),
        ("The Title (fwd)", "the title"),
        ("Re:", None),
        (None, None),
    ],
)
def test_the_thread_of_a_post(subject: str | None, thread: str | None) -> None:
    header = "From: a@b.c\n" + ("" if subject is None else f"Subject: {subject}\n")
    assert newsgroups.thread(f"{header}Lines: 1\n\nSubject: of the text\n") == thread
