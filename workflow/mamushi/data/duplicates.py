"""Duplicates and cross-posts: "any post whose normalized content appears in both classes is removed
from both, and near-duplicates within each class are collapsed to a single copy" (the paper, data
preparation).

Two texts are exact duplicates when their keys agree (NFKC, lower case, white space folded), and
near duplicates when the Jaccard similarity of their sets of word shingles reaches a threshold t (in
scripts without spaces, each character is a word).
Clusters are the connected components. All similar pairs are found, by a prefix filter (Chaudhuri et
al. 2006; Bayardo et al. 2007): of shingles sorted by rising frequency, two sets of similarity t
share one of the |x| - ceil(t |x|) + 1 first of x, and likewise of y. A pair whose first shared
shingle has place i in x and j in y (from 0) shares at most 1 + min(|x| - i - 1, |y| - j - 1) (Xiao
et al. 2008). Shingles are computed a block at a time, twice, and not kept.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mamushi.data.cells import blocks_of, some, store
from mamushi.data.scripts import spaced
from mamushi.running.progress import Progress

ROWS = 1024
"""Texts of a block; at most 4096, whose numbers stand above their hashes."""
SLOTS, LEAST_SLOTS = 24, 2**16
"""Counters of shingles for each text, and in all. Where shingles share one, no pair is lost."""
PART = 2**22
"""Shingles of prefixes that are sorted at a time, about."""
_MOST = 2**15 - 1
"""A counter stops there; with a block's texts on top it is below 2^16."""
_SLACK = 1e-9
"""Share of a text by which a bound is loosened, for what rounding makes of t |x|."""
HASH = np.uint64(52)
"""Bits of a shingle's hash; above them stands the row within the block."""

Hashes = NDArray[np.uint64]
_Places = NDArray[np.int64]
_Narrow = NDArray[np.int32]
_Prefixes = NDArray[np.void]
PREFIX_ENTRY = np.dtype([("hash", np.uint64), ("row", np.int32), ("place", np.int32)])
"""Of a shingle: its text, and its place among the text's shingles by rising frequency."""


@dataclass(frozen=True)
class Duplicates:
    """One entry per text, of which exactly one boolean is true: a text is kept, or it goes, since
    its key is that of one that is kept, or it is in the cluster of one with another key, or in a
    cluster with texts of both domains."""

    roots: NDArray[np.int64]
    """The first text of its cluster: the one that is kept, unless the cluster is crossed."""
    kept: NDArray[np.bool_]
    exact: NDArray[np.bool_]
    near: NDArray[np.bool_]
    crossed: NDArray[np.bool_]

    @classmethod
    def none(cls, n: int) -> Self:
        """Return what says that all of ``n`` texts stay."""
        no = np.zeros(n, dtype=np.bool_)
        return cls(np.arange(n), ~no, no, no, no)


class DuplicateClusters:
    """Union-find over ``range(n)``. The root of a cluster is its smallest member."""

    def __init__(self, n: int) -> None:
        self.parent = np.arange(n)

    def find(self, items: NDArray[np.integer[Any]]) -> _Places:
        """Return the smallest member of each item's cluster."""
        while True:
            above = self.parent[items]
            top = self.parent[above]
            if np.array_equal(above, top):
                return top
            items = top

    def union(self, a: int, b: int) -> None:
        """Make one cluster of those of ``a`` and ``b``."""
        low, high = np.sort(self.find(np.array([a, b])))
        self.parent[high] = low


def key(text: str) -> str:
    """Return the text after NFKC, lower case and folding of white space."""
    return " ".join(unicodedata.normalize("NFKC", text).lower().split())


def shingles(text: str, words: int) -> frozenset[str]:
    """Return the sets of ``words`` consecutive words of a spaced key; a shorter one is one
    shingle."""
    tokens = text.split()
    if len(tokens) < words:
        return frozenset([text])
    return frozenset(" ".join(tokens[i : i + words]) for i in range(len(tokens) - words + 1))


def jaccard(a: frozenset[str], b: frozenset[str]) -> float:
    """Return |a & b| / |a | b|."""
    shared = len(a & b)
    return shared / (len(a) + len(b) - shared)


def find_duplicates(
    texts: Sequence[str], forget: NDArray[np.bool_], *, threshold: float | None, words: int
) -> Duplicates:
    """Return which texts stay, and why the others go; without a ``threshold`` exact copies alone.
    A cluster with texts of both domains goes as a whole; of any other the first text stays."""
    index = np.arange(len(texts))
    (keys,) = store(zip(map(key, texts)))
    same_key = first_of_key(keys)
    clusters = DuplicateClusters(len(texts))
    clusters.parent = same_key.copy()
    if threshold is not None:
        unique = np.flatnonzero(same_key == index)
        (keys,) = store(zip(map(spaced, some(keys, same_key == index))))
        for a, b in near_pairs(keys, threshold, words):
            clusters.union(unique[a], unique[b])
    roots = clusters.find(index)
    has_forget = np.bincount(roots, weights=forget, minlength=len(texts)) > 0
    has_retain = np.bincount(roots, weights=~forget, minlength=len(texts)) > 0
    crossed = (has_forget & has_retain)[roots]
    kept = (roots == index) & ~crossed
    # An exact copy of a near duplicate is itself a near duplicate of the text that is kept.
    exact = (same_key == roots) & (roots != index) & ~crossed
    near = ~(kept | exact | crossed)
    return Duplicates(roots, kept, exact, near, crossed)


def first_of_key(keys: Iterable[str]) -> _Places:
    """Return of each text the first one with its key, (n,), by digests of 128 bits."""
    digests = (blake2b(text_key.encode(), digest_size=16).digest() for text_key in keys)
    codes = pa.array(digests, pa.binary(16)).dictionary_encode().indices.to_numpy()
    first: _Places = np.unique(codes, return_index=True)[1]
    return first[codes]


def near_pairs(keys: Sequence[str], threshold: float, words: int) -> Iterator[tuple[int, int]]:
    """Iterate over pairs of distinct keys whose Jaccard similarity is at least ``threshold``, but
    for those that others already connect."""

    @lru_cache(maxsize=4096)
    def shingles_of(i: int) -> frozenset[str]:
        return shingles(keys[i], words)

    size, prefixes = _prefixes(keys, threshold, words)
    clusters = DuplicateClusters(len(keys))
    count = np.uint64(max(-(-len(prefixes) // PART), 1))
    for number in range(int(count)):
        # All texts with a shingle have one number.
        entries = prefixes[prefixes["hash"] % count == number]
        for i, j in _candidates(size, entries, threshold, clusters):
            root_i, root_j = clusters.find(np.array([i, j]))
            if root_i != root_j and jaccard(shingles_of(i), shingles_of(j)) >= threshold:
                clusters.union(i, j)
                yield min(i, j), max(i, j)


def _candidates(
    size: _Narrow, prefixes: _Prefixes, threshold: float, clusters: DuplicateClusters
) -> Iterator[tuple[int, int]]:
    """Iterate over pairs that share a shingle early enough, and were not in one of the ``clusters``
    when they were looked up. ``size`` (n,) is of all texts, ``prefixes`` a part of these."""
    # Those with the same shingle lie together, by size, so that pairs too unlike in size are left.
    order = np.lexsort((prefixes["row"], size[prefixes["row"]], prefixes["hash"]))
    hashes, rows, places = (prefixes[name][order] for name in PREFIX_ENTRY.names or ())
    del order
    sizes = size[rows]
    at, step = np.arange(len(hashes) - 1), 1
    while len(at):
        # Each with the one so many steps further; sizes rise, so who has none now will have none.
        to = at + step
        alike = (hashes[at] == hashes[to]) & (sizes[at] >= threshold * sizes[to] - _SLACK)
        at, to = at[alike], to[alike]
        least = threshold / (1 + threshold) * (sizes[at] + sizes[to]) - _SLACK
        left = np.minimum(sizes[at] - places[at], sizes[to] - places[to])
        apart = clusters.find(rows[at]) != clusters.find(rows[to])
        for pair in np.flatnonzero((left >= least) & apart).tolist():
            yield int(rows[at[pair]]), int(rows[to[pair]])
        if step.bit_count() == 1:
            at = _unfinished(at, hashes, clusters.find(rows))
        step += 1
        at = at[at + step < len(hashes)]


def _unfinished(at: _Places, hashes: Hashes, roots: _Places) -> _Places:
    """Return those ``at`` whose shingle belongs to more than one cluster: a thousand copies of a
    form letter are one cluster after the first step, and not compared in pairs."""
    starts = np.flatnonzero(np.r_[True, hashes[1:] != hashes[:-1]])
    is_single = np.minimum.reduceat(roots, starts) == np.maximum.reduceat(roots, starts)
    return at[~is_single[np.searchsorted(starts, at, side="right") - 1]]


def _prefixes(keys: Sequence[str], threshold: float, words: int) -> tuple[_Narrow, _Prefixes]:
    """Return the sizes (n,) of the sets of shingles, and those in their prefixes that more than one
    text may have."""
    slots = 1 << (max(LEAST_SLOTS, SLOTS * len(keys)) - 1).bit_length()
    counters = np.zeros(slots, dtype=np.uint16)
    size = np.zeros(len(keys), dtype=np.int32)
    for rows, row, hashed in _blocks(keys, words, "counted for near-duplicates"):
        size[rows] = np.bincount(row, minlength=rows.stop - rows.start)
        slot = (hashed & np.uint64(slots - 1)).astype(np.int64)
        np.add.at(counters, slot, np.uint16(1))
        counters[slot[counters[slot] > _MOST]] = _MOST
    prefix = size - np.ceil(threshold * size - _SLACK).astype(np.int32) + 1
    prefixes = [np.empty(0, PREFIX_ENTRY)]
    for rows, row, hashed in _blocks(keys, words, "compared for near-duplicates"):
        count = counters[(hashed & np.uint64(slots - 1)).astype(np.int64)]
        rare = np.bincount(row[count == 1], minlength=rows.stop - rows.start)
        shared = (count > 1) & (rare < prefix[rows])[row]
        row, hashed, count = row[shared], hashed[shared], count[shared]
        order = np.lexsort((hashed, count, row))
        row, hashed = row[order], hashed[order]
        place = rare[row] + np.arange(len(row)) - np.searchsorted(row, row)
        inside = place < prefix[rows][row]
        entries = np.empty(int(inside.sum()), PREFIX_ENTRY)
        entries["hash"], entries["row"] = hashed[inside], row[inside] + rows.start
        entries["place"] = place[inside]
        prefixes.append(entries)
    return size, np.concatenate(prefixes)


def _blocks(
    keys: Sequence[str], words: int, purpose: str
) -> Iterator[tuple[slice, _Places, Hashes]]:
    """Iterate over blocks: their rows, and their shingles, each as its row within the block and its
    hash; the shingles of a row are distinct, and their hashes rise."""
    start = 0
    with Progress(len(keys), purpose, "text") as progress:
        for block in blocks_of(keys, ROWS):
            packed = _hashed(block, words)
            row = (packed >> HASH).astype(np.int64)
            yield slice(start, start + len(block)), row, packed & np.uint64((1 << int(HASH)) - 1)
            progress.advance(len(block))
            start += len(block)


def _hashed(keys: Sequence[str], words: int) -> Hashes:
    """Return the distinct shingles of each key, hashed, below the number of its row; ascending.

    A key of fewer words than a shingle has none: it is like no other.
    """
    divided = pc.split_pattern(pa.array(keys, pa.string()), " ")
    encoded = divided.values.dictionary_encode()
    digests = b"".join(
        blake2b(word.encode(), digest_size=8).digest() for word in encoded.dictionary.to_pylist()
    )
    word = np.frombuffer(digests, np.uint64)[encoded.indices.to_numpy()]
    offsets = divided.offsets.to_numpy().astype(np.int64)
    row = np.repeat(np.arange(len(keys)), np.diff(offsets))
    starts = np.flatnonzero(np.arange(len(word)) + words <= offsets[1:][row])
    hashed = word[starts]
    for place in range(1, words):
        hashed = _mixed(hashed * np.uint64(0x9E3779B97F4A7C15) + word[starts + place])
    packed = np.sort((row[starts].astype(np.uint64) << HASH) | (hashed >> (np.uint64(64) - HASH)))
    return packed[np.r_[True, packed[1:] != packed[:-1]][: len(packed)]]


def _mixed(x: Hashes) -> Hashes:
    """Return the finalizer of SplitMix64 (Steele et al. 2014): each bit depends on all of x."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
