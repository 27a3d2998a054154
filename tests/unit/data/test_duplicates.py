"""Duplicates: against all pairs by brute force, and the accounting of who was dropped why."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mamushi.data.duplicates import (
    RECALL,
    Clusters,
    Duplicates,
    bands,
    find_duplicates,
    jaccard,
    key,
    near_pairs,
    shingles,
)


def find(
    texts: list[str], forget: list[bool], threshold: float | None = 0.9, words: int = 3
) -> Duplicates:
    return find_duplicates(
        texts, np.array(forget), threshold=threshold, words=words, permutations=128
    )


def components(n: int, edges: list[tuple[int, int]]) -> list[int]:
    """The smallest member of each item's component, by spreading it until nothing changes."""
    labels = list(range(n))
    while True:
        before = list(labels)
        for a, b in edges:
            labels[a] = labels[b] = min(labels[a], labels[b])
        if labels == before:
            return labels


def test_key_folds_compatibility_forms_case_and_white_space() -> None:
    assert key(" \uff26oo\u00a0 \t\n\ufb01x ") == "foo fix"
    assert key("foo") != key("fo o")


def test_shingles() -> None:
    assert shingles("a b c d", 3) == {"a b c", "b c d"}
    assert shingles("a b c", 3) == {"a b c"}
    assert shingles("a b", 3) == {"a b"}


def test_jaccard() -> None:
    assert jaccard(frozenset("abc"), frozenset("bcd")) == 0.5
    assert jaccard(frozenset("ab"), frozenset("ab")) == 1
    assert jaccard(frozenset("a"), frozenset("b")) == 0


@given(st.integers(1, 30), st.data())
def test_clusters_are_the_connected_components(n: int, data: st.DataObject) -> None:
    pair = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1))
    edges = data.draw(st.lists(pair, max_size=40))
    clusters = Clusters(n)
    for a, b in edges:
        clusters.union(a, b)
    assert clusters.roots().tolist() == components(n, edges)


@given(st.floats(0.05, 1), st.integers(16, 256))
def test_bands_fit_and_propose_pairs_at_the_threshold(threshold: float, permutations: int) -> None:
    b, r = bands(threshold, permutations)
    assert b >= 2 and r >= 1 and b * r <= permutations
    # With one row a band there is nothing more to gain from these permutations.
    assert r == 1 or 1 - (1 - threshold**r) ** b >= RECALL


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


def test_similar_texts_below_the_threshold_stay() -> None:
    other = " ".join(LONG.split()[:50])  # 48 of 58 shingles
    assert 0.8 < jaccard(shingles(LONG, 3), shingles(other, 3)) < 0.9
    assert find([LONG, other], [True, True]).kept.all()


def test_a_chain_of_near_duplicates_is_one_cluster() -> None:
    words = [f"w{i}" for i in range(80)]
    chain = [" ".join(words[i : i + 60]) for i in range(0, 12, 3)]  # 55 of 61 shingles each step
    assert jaccard(shingles(chain[0], 3), shingles(chain[1], 3)) > 0.9
    assert jaccard(shingles(chain[0], 3), shingles(chain[-1], 3)) < 0.9
    assert find(chain, [True] * 4).kept.tolist() == [True, False, False, False]


def test_without_a_threshold_only_exact_duplicates_go() -> None:
    found = find([LONG, LONG + " tail", LONG], [True, True, True], threshold=None)
    assert found.kept.tolist() == [True, True, False]


def test_short_texts_are_compared_as_a_whole() -> None:
    assert find(["yes", "no", "oh yes"], [True, True, True]).kept.all()


def test_a_threshold_of_1_collapses_equal_sets_of_shingles() -> None:
    # The same shingles in another order, so another key.
    a, b = "a b a b a", "b a b a b"
    assert shingles(a, 3) == shingles(b, 3)
    assert find([a, b], [True, True], threshold=1.0).near.tolist() == [False, True]


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


@pytest.mark.parametrize("threshold", [0.6, 0.9])
def test_near_pairs_against_all_pairs(threshold: float) -> None:
    """Texts derived from each other by a few edits, so that many pairs lie about the threshold."""
    rng = np.random.default_rng(0)
    texts = []
    for _ in range(40):
        words = [f"v{w}" for w in rng.integers(0, 500, 120)]
        for _ in range(5):
            texts.append(" ".join(words))
            words = list(words)
            words[rng.integers(0, 120)] = f"v{rng.integers(0, 500)}"
    texts = list(dict.fromkeys(texts))
    sets = [shingles(text, 3) for text in texts]
    truth = [
        (a, b)
        for a, b in combinations(range(len(texts)), 2)
        if len(sets[a] & sets[b]) >= threshold * len(sets[a] | sets[b])
    ]
    found = list(near_pairs(texts, threshold, 3, 128))
    assert set(found) <= set(truth)
    assert len(truth) > 40
    expected = np.array(components(len(texts), truth))
    got = np.array(components(len(texts), found))
    # A pair is missed with probability at most 1 - RECALL; most components have more than one.
    assert (expected != got).mean() <= 1 - RECALL
