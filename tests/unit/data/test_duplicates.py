"""Duplicates: against all pairs by brute force, and the accounting of who was dropped why."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from mamushi.data import duplicates
from mamushi.data.duplicates import Duplicates, find_duplicates, jaccard, near_roots

LONG = " ".join(f"w{i}" for i in range(60))
ALMOST = LONG + " tail"  # 58 of 59 shingles
NEAR, CROSSED, EXACT = "near", "cross_post", ["exact"] * 3


def find(
    texts: list[str], forget: list[bool], threshold: float | None = 0.9, words: int = 3
) -> Duplicates:
    return find_duplicates(texts, np.array(forget), threshold=threshold, words=words)


@pytest.mark.parametrize(
    ("texts", "forget", "reasons", "roots"),
    [
        (
            ["A b", "c \ufb01", "a\u00a0 B", "C fi", "\uff41 b"],
            "frfrf",
            ["", ""] + ["exact"] * 3,
            [0, 1, 0, 1, 0],
        ),
        (["a b", "x y", "A b", "a b"], "ffrr", [CROSSED, "", CROSSED, CROSSED], [0, 1, 0, 0]),
        ([LONG, ALMOST, ALMOST.upper(), "other"], "fffr", ["", NEAR, NEAR, ""], [0, 0, 0, 3]),
        ([LONG, ALMOST, "other", "more"], "frfr", [CROSSED, CROSSED, "", ""], [0, 0, 2, 3]),
    ],
)
def test_the_first_stays_and_a_cluster_of_both_domains_goes(
    texts: list[str], forget: str, reasons: list[str], roots: list[int]
) -> None:
    found = find(texts, [domain == "f" for domain in forget])
    assert found.reasons.tolist() == reasons and found.roots.tolist() == roots


def check_against_all_pairs(keys: list[str], threshold: float, words: int) -> int:
    """Compare the clusters with those of all pairs. Return how many pairs there are."""
    tokens = [text.split() for text in keys]
    # A text of fewer words than a shingle is like no other.
    sets = [
        frozenset(" ".join(text[i : i + words]) for i in range(max(1, len(text) - words + 1)))
        for text in tokens
    ]
    pairs = combinations(range(len(keys)), 2)
    near = [(i, j) for i, j in pairs if jaccard(sets[i], sets[j]) >= threshold]
    rows = np.array(near, dtype=np.int64).reshape(-1, 2).T
    graph = sparse.coo_matrix((np.ones(rows.shape[1]), rows), shape=(len(keys), len(keys)))
    _, codes = sparse.csgraph.connected_components(graph, directed=False)
    first = np.unique(codes, return_index=True)[1]
    assert near_roots(keys, threshold, words).tolist() == first[codes].tolist()
    return len(near)


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
@pytest.mark.parametrize(("rows", "slots"), [(7, 24), (1024, 24), (4096, 1)])
def test_near_duplicates_are_those_of_all_pairs(
    threshold: float, rows: int, slots: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where shingles share counters."""
    monkeypatch.setattr(duplicates, "SLOTS", slots)
    monkeypatch.setattr(duplicates, "ROWS", rows)
    texts = edited(40, 120, np.random.default_rng(0))
    # A form letter that fills in names, between others that share most of their words with it.
    letter = texts[0].split()
    texts += [" ".join([*letter[: 100 + i], f"name{i}"]) for i in range(20)]
    assert check_against_all_pairs(texts, threshold, 3) > 200


@settings(max_examples=60)
@given(
    st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=14), min_size=1, max_size=30),
    st.sampled_from([0.3, 0.5, 2 / 3, 0.75, 0.8, 0.9, 1.0]),
    st.integers(1, 3),
)
def test_near_duplicates_of_few_words_are_those_of_all_pairs(
    texts: list[list[str]], threshold: float, words: int
) -> None:
    """Few words: every shingle is frequent, many sets are equal, many pairs just at the bound."""
    keys = list(dict.fromkeys(" ".join(text) for text in texts))
    check_against_all_pairs(keys, threshold, words)


def test_a_thousand_copies_of_a_letter_are_not_compared_in_pairs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared = []
    monkeypatch.setattr(duplicates, "jaccard", lambda a, b: compared.append(1) or jaccard(a, b))
    texts = [f"{LONG} name{i}" for i in range(1000)]
    assert (find(texts, [True] * 1000).reasons == "").sum() == 1
    assert len(compared) == 999
