"""Duplicates: against all pairs by brute force, and the accounting of who was dropped why."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from mamushi.data import duplicates
from mamushi.data.duplicates import (
    Duplicates,
    find_duplicates,
    jaccard,
    key,
    near_pairs,
    shingles,
)


def find(
    texts: list[str], forget: list[bool], threshold: float | None = 0.9, words: int = 3
) -> Duplicates:
    return find_duplicates(texts, np.array(forget), threshold=threshold, words=words)


def components(n: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """A number for each item, the same within a component."""
    rows = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2).T
    graph = sparse.coo_matrix((np.ones(rows.shape[1]), rows), shape=(n, n))
    return list(sparse.csgraph.connected_components(graph, directed=False)[1])


def test_key_folds_compatibility_forms_case_and_white_space() -> None:
    assert key(" \uff26oo\u00a0 \t\n\ufb01x ") == "foo fix"
    assert key("foo") != key("fo o")


def test_exact_duplicates_keep_the_first() -> None:
    found = find(["A b", "c d", "a  B", "C D", "a b"], [True, False, True, False, True])
    assert found.kept.tolist() == [True, True, False, False, False]
    assert found.exact.tolist() == [False, False, True, True, True]
    assert found.roots.tolist() == [0, 1, 0, 1, 0]
    assert not found.near.any() and not found.crossed.any()


def test_cross_posts_go_from_both_domains_with_all_their_copies() -> None:
    found = find(["a b", "x y", "A b", "a b"], [True, True, False, False])
    assert found.kept.tolist() == [False, True, False, False]
    assert found.crossed.tolist() == [True, False, True, True]


LONG = " ".join(f"w{i}" for i in range(60))


def test_near_duplicates_of_one_domain_collapse_and_of_both_go() -> None:
    almost = LONG + " tail"  # 58 of 59 shingles
    assert 0.9 < jaccard(shingles(LONG, 3), shingles(almost, 3)) < 1
    found = find([LONG, almost, almost.upper(), "other"], [True, True, True, False])
    assert found.kept.tolist() == [True, False, False, True]
    assert found.near.tolist() == [False, True, True, False]
    assert found.roots.tolist() == [0, 0, 0, 3]
    assert not found.exact.any()
    crossed = find([LONG, almost, "other", "more"], [True, False, True, False])
    assert crossed.crossed.tolist() == [True, True, False, False]


def test_a_chain_of_near_duplicates_is_one_cluster() -> None:
    words = [f"w{i}" for i in range(80)]
    chain = [" ".join(words[i : i + 60]) for i in range(0, 12, 3)]  # 55 of 61 shingles each step
    assert jaccard(shingles(chain[0], 3), shingles(chain[1], 3)) > 0.9
    assert jaccard(shingles(chain[0], 3), shingles(chain[-1], 3)) < 0.9
    assert find(chain, [True] * 4).kept.tolist() == [True, False, False, False]


def test_without_a_threshold_only_exact_duplicates_go() -> None:
    found = find([LONG, LONG + " tail", LONG], [True, True, True], threshold=None)
    assert found.kept.tolist() == [True, True, False]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.text("ab ", min_size=1, max_size=8).filter(str.strip), st.booleans()),
        min_size=1,
        max_size=25,
    )
)
def test_accounting(rows: list[tuple[str, bool]]) -> None:
    texts, forget = [text for text, _ in rows], [domain for _, domain in rows]
    found = find(texts, forget, words=1)
    total = sum(m.astype(int) for m in (found.kept, found.exact, found.near, found.crossed))
    assert (total == 1).all()
    kept = [key(texts[i]) for i in np.flatnonzero(found.kept)]
    assert len(kept) == len(set(kept))
    both = {key(t) for t, f in rows if f} & {key(t) for t, f in rows if not f}
    assert not both & set(kept)
    # Whatever is dropped as a copy has its original among what is kept.
    assert {key(texts[i]) for i in np.flatnonzero(found.exact)} <= set(kept)
    copies = np.flatnonzero(found.exact | found.near)
    assert found.kept[found.roots[copies]].all()
    assert (np.array(forget)[found.roots[copies]] == np.array(forget)[copies]).all()


def all_pairs(keys: list[str], threshold: float, words: int) -> list[tuple[int, int]]:
    sets = [shingles(each, words) for each in keys]
    pairs = combinations(range(len(keys)), 2)
    return [(a, b) for a, b in pairs if jaccard(sets[a], sets[b]) >= threshold]


def check_against_all_pairs(keys: list[str], threshold: float, words: int) -> int:
    """The pairs that are found are similar, and connect what all similar pairs connect."""
    truth = all_pairs(keys, threshold, words)
    found = list(near_pairs(keys, threshold, words))
    assert set(found) <= set(truth)
    # None that is superfluous, so none twice.
    parts = components(len(keys), truth)
    assert len(found) == len(keys) - len(set(parts))
    assert components(len(keys), found) == parts
    return len(truth)


def edited(families: int, length: int, rng: np.random.Generator) -> list[str]:
    """Texts derived from each other by a few edits, so that many pairs lie about the threshold."""
    texts = []
    for _ in range(families):
        words = [f"v{w}" for w in rng.integers(0, 500, length)]
        for _ in range(5):
            texts.append(" ".join(words))
            words = list(words)
            words[rng.integers(0, length)] = f"v{rng.integers(0, 500)}"
    return list(dict.fromkeys(texts))


@pytest.mark.parametrize("threshold", [0.6, 0.9])
@pytest.mark.parametrize(("rows", "part"), [(7, 2**22), (1024, 50), (4096, 999)])
def test_near_pairs_are_all_pairs(
    threshold: float, rows: int, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duplicates, "PART", part)
    monkeypatch.setattr(duplicates, "ROWS", rows)
    texts = edited(40, 120, np.random.default_rng(0))
    # A form letter that fills in names, between others that share most of their words with it.
    letter = texts[0].split()
    texts += [" ".join([*letter[: 100 + i], f"name{i}"]) for i in range(20)]
    assert check_against_all_pairs(texts, threshold, 3) > 200


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=14), min_size=1, max_size=30),
    st.sampled_from([0.3, 0.5, 2 / 3, 0.75, 0.8, 0.9, 1.0]),
    st.integers(1, 3),
)
def test_near_pairs_of_few_words_are_all_pairs(
    texts: list[list[str]], threshold: float, words: int
) -> None:
    """Few words: every shingle is frequent, many sets are equal, many pairs just at the bound."""
    keys = list(dict.fromkeys(" ".join(text) for text in texts))
    # The set of a text of fewer words than a shingle is that text, which is no other's key.
    check_against_all_pairs(keys, threshold, words)


def test_counters_that_shingles_share_or_that_are_full_lose_no_pair(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(duplicates, "_MOST", 3)
    monkeypatch.setattr(duplicates, "LEAST_SLOTS", 4)
    monkeypatch.setattr(duplicates, "SLOTS", 1)
    check_against_all_pairs(edited(20, 60, np.random.default_rng(1)), 0.8, 3)


def test_a_thousand_copies_of_a_letter_are_not_compared_in_pairs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared = []
    monkeypatch.setattr(duplicates, "jaccard", lambda a, b: compared.append(1) or jaccard(a, b))
    texts = [f"{LONG} name{i}" for i in range(1000)]
    assert find(texts, [True] * 1000).kept.sum() == 1
    assert len(compared) == 999
