"""Groups of texts that are not independent: threads and columns, and sections that keep them."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mamushi.data.loaders import newsgroups
from mamushi.data.splitting import split_sections
from tests.unit.data.test_examples import PAPER

NAMES = np.array(list(PAPER))


def threads(n: int, seed: int) -> tuple[Any, list[str], list[str | None]]:
    """Domains, strata and groups of n texts: half of them in groups of two to nine, of one stratum
    but for every tenth text."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(n), rng.integers(2, 10, n))[:n]
    alone = rng.random(n) < 0.5
    stratum = np.where(rng.random(n) < 0.1, rng.integers(0, 6, n), group % 6)
    names = [None if one else f"g{g}" for one, g in zip(alone, group, strict=True)]
    return stratum < 2, [str(each) for each in stratum], names


def straddling(where: Any, groups: list[str | None]) -> int:
    """How many groups are in two places."""
    pairs = {(g, w) for g, w in zip(groups, where, strict=True) if g is not None}
    return sum(count > 1 for count in Counter(g for g, _ in pairs).values())


def test_a_thread_is_in_one_section_and_the_shares_hold() -> None:
    forget, strata, groups = threads(1000, 0)
    rows = forget, strata, [None] * 1000, PAPER, 0
    # As they were drawn before there were groups, most are in two.
    assert straddling(split_sections(*rows), groups) > 60
    sections = split_sections(*rows, groups)
    assert straddling(sections, groups) == 0
    for domain in (True, False):
        own = sections[forget == domain]
        assert all(abs((own == name).sum() - PAPER[name] * len(own)) < 2 for name in NAMES)
    for stratum in set(strata):
        own = sections[np.array(strata) == stratum]
        assert all(abs((own == name).mean() - PAPER[name]) < 0.03 for name in NAMES)


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
    given_to = np.array(forget), strata, [None] * len(rows), shares, seed
    sections = split_sections(*given_to, groups)
    assert straddling(sections, groups) == 0
    assert {shares[name] > 0 for name in sections} == {True}
    assert sections.tolist() == split_sections(*given_to, groups).tolist()
    # Names of groups that nobody shares change nothing.
    alone = [str(row) for row in range(len(rows))]
    assert split_sections(*given_to).tolist() == split_sections(*given_to, alone).tolist()


@pytest.mark.parametrize(
    ("subject", "thread"),
    [
        ("Re: The  Title", "the title"),
        ("RE: re^2: Re[3]: Fwd: The Title", "the title"),
        ("Re: The Title (was Re: Another)", "the title"),
        ("The Title Was: Another", "the title"),
        ("The Title (fwd)", "the title"),
        ("What was the title", "what was the title"),
        ("Re:", None),
        ("<None>", None),
        (None, None),
    ],
)
def test_the_thread_of_a_post(subject: str | None, thread: str | None) -> None:
    header = "From: a@b.c\n" + ("" if subject is None else f"Subject: {subject}\n")
    assert newsgroups.thread(f"{header}Lines: 1\n\nSubject: of the text\n") == thread
