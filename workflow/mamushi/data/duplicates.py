"""Duplicates and cross-posts: "any post whose normalized content appears in both classes is removed
from both, and near-duplicates within each class are collapsed to a single copy" (the paper, data
preparation).

Two texts are exact duplicates when their keys agree (NFKC, lower case, white space folded), and
near duplicates when the Jaccard similarity of their sets of word shingles reaches a threshold.
MinHash with locality-sensitive hashing proposes pairs; each is verified on the sets themselves, so
that no text is dropped on an estimate. Clusters are the connected components.
"""

from __future__ import annotations

import unicodedata
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from datasketch import MinHash, MinHashLSH
from numpy.typing import NDArray

RECALL = 0.99
"""Least probability with which a pair just at the threshold must be proposed."""


@dataclass(frozen=True)
class Duplicates:
    """One entry per text. Exactly one of the four booleans is true of each."""

    roots: NDArray[np.int64]
    """The first text of its cluster: the one that is kept, unless the cluster is crossed."""
    kept: NDArray[np.bool_]
    exact: NDArray[np.bool_]
    """Dropped: has the key of a text that is kept."""
    near: NDArray[np.bool_]
    """Dropped: in the cluster of a text that is kept, with another key."""
    crossed: NDArray[np.bool_]
    """Dropped: in a cluster with texts of both domains."""


class Clusters:
    """Union-find over ``range(n)``. The root of a cluster is its smallest member."""

    def __init__(self, n: int) -> None:
        self.parent = list(range(n))

    def find(self, item: int) -> int:
        """The smallest member of the item's cluster."""
        while self.parent[item] != item:
            self.parent[item] = self.parent[self.parent[item]]
            item = self.parent[item]
        return item

    def union(self, a: int, b: int) -> None:
        """Make one cluster of those of ``a`` and ``b``."""
        low, high = sorted((self.find(a), self.find(b)))
        self.parent[high] = low

    def roots(self) -> NDArray[np.int64]:
        """``find`` of every item, shape (n,)."""
        return np.array([self.find(item) for item in range(len(self.parent))], dtype=np.int64)


def key(text: str) -> str:
    """The text after NFKC, lower case and folding of white space."""
    return " ".join(unicodedata.normalize("NFKC", text).lower().split())


def shingles(text: str, words: int) -> frozenset[str]:
    """Sets of ``words`` consecutive words of a key; a shorter one is a single shingle."""
    parts = text.split()
    if len(parts) < words:
        return frozenset([text])
    return frozenset(" ".join(parts[i : i + words]) for i in range(len(parts) - words + 1))


def jaccard(a: frozenset[str], b: frozenset[str]) -> float:
    """|a & b| / |a | b|."""
    shared = len(a & b)
    return shared / (len(a) + len(b) - shared)


def find_duplicates(
    texts: Sequence[str],
    forget: NDArray[np.bool_],
    *,
    threshold: float | None,
    words: int,
    permutations: int,
) -> Duplicates:
    """Which texts stay, and why the others go.

    A cluster with texts of both domains goes as a whole; of any other the first text stays.
    ``threshold`` None looks for exact duplicates only.
    """
    keys = [key(text) for text in texts]
    first_of: dict[str, int] = {}
    clusters = Clusters(len(keys))
    for i, k in enumerate(keys):
        clusters.union(first_of.setdefault(k, i), i)
    same_key = clusters.roots()  # Before near duplicates join: the first text with this key.
    if threshold is not None:
        unique = list(first_of.values())
        for a, b in near_pairs([keys[i] for i in unique], threshold, words, permutations):
            clusters.union(unique[a], unique[b])
    roots = clusters.roots()
    index = np.arange(len(keys))
    has_forget = np.bincount(roots, weights=forget, minlength=len(keys)) > 0
    has_retain = np.bincount(roots, weights=~forget, minlength=len(keys)) > 0
    crossed = (has_forget & has_retain)[roots]
    kept = (roots == index) & ~crossed
    # An exact copy of a near duplicate is itself a near duplicate of the text that is kept.
    exact = (same_key == roots) & (roots != index) & ~crossed
    near = ~(kept | exact | crossed)
    return Duplicates(roots, kept, exact, near, crossed)


def near_pairs(
    keys: Sequence[str], threshold: float, words: int, permutations: int
) -> Iterator[tuple[int, int]]:
    """Pairs of distinct keys with Jaccard similarity of at least ``threshold``.

    Enough pairs for the connected components: one is left out where others already connect it.
    """

    @lru_cache(maxsize=4096)
    def shingles_of(i: int) -> frozenset[str]:
        return shingles(keys[i], words)

    # CRC-32 is fast and, unlike `hash`, the same in every process; MinHash mixes it further.
    encoded = ([s.encode() for s in shingles_of(i)] for i in range(len(keys)))
    minhashes = MinHash.generator(encoded, num_perm=permutations, seed=1, hashfunc=zlib.crc32)
    index = MinHashLSH(num_perm=permutations, params=bands(threshold, permutations))
    clusters = Clusters(len(keys))
    for i, minhash in enumerate(minhashes):
        for j in sorted(index.query(minhash)):
            if clusters.find(i) == clusters.find(j):
                continue
            if jaccard(shingles_of(i), shingles_of(j)) >= threshold:
                clusters.union(i, j)
                yield j, i
        index.insert(i, minhash, check_duplication=False)


def bands(threshold: float, permutations: int) -> tuple[int, int]:
    """Bands b and rows r for the locality-sensitive hashing, with b * r <= ``permutations``.

    A pair of similarity s is proposed with probability 1 - (1 - s^r)^b. The largest r (the fewest
    false proposals) is taken with which this is at least ``RECALL`` at the threshold.
    """
    for r in range(permutations // 2, 1, -1):
        b = permutations // r
        if 1 - (1 - threshold**r) ** b >= RECALL:
            return b, r
    return permutations, 1
