"""Duplicates and cross-posts: "any post whose normalized content appears in both classes is removed
from both, and near-duplicates within each class are collapsed to a single copy" (the paper).

Two texts are exact duplicates when their keys agree, and near duplicates when the Jaccard
similarity of their sets of word shingles reaches a threshold t. Clusters are the connected
components. All similar pairs are found, by a prefix filter (Chaudhuri et al. 2006; Bayardo et al.
2007): of shingles sorted by rising frequency, two sets of similarity t share one of the |x| -
ceil(t |x|) + 1 first of x, and likewise of y. A pair whose first shared shingle has place i in
x and j in y (from 0) shares at most 1 + min(|x| - i - 1, |y| - j - 1) (Xiao et al. 2008). Shingles
are computed twice, and not kept.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mamushi.data.cells import take, to_cells
from mamushi.data.scripts import space_words
from mamushi.running.progress import Progress

ROWS = 1024  # Texts of a block; at most 4096, whose numbers stand above 52 bits of their hashes.
SLOTS = 24  # Counters of shingles for each text; where shingles share one, no pair is lost.
_SLACK = 1e-9  # By which a bound is loosened, for what rounding makes of t |x|.


class Duplicates(NamedTuple):
    """Of each text (n,) the first one of its cluster, and why it goes: as its ``exact`` copy, a
    ``near`` one, or a ``cross_post``, in a cluster of both domains; empty where it stays."""

    roots: NDArray[np.int64]
    reasons: NDArray[np.str_]


def folded_text(text: str) -> str:
    """Return the text after NFKC, lower case and folding of white space."""
    return " ".join(unicodedata.normalize("NFKC", text).lower().split())


def find_duplicates(
    texts: Sequence[str], forget: NDArray[np.bool_], *, threshold: float | None, words: int
) -> Duplicates:
    """Return which texts stay, and why others go; without a ``threshold`` exact copies alone."""
    (keys,) = to_cells(zip(map(folded_text, texts)))
    roots = same_key = first_of_key(keys)
    index = np.arange(len(texts))
    if threshold is not None:
        unique, code = np.unique(same_key, return_inverse=True)
        (keys,) = to_cells(zip(map(space_words, take(keys, same_key == index))))
        roots = unique[near_roots(keys, threshold, words)][code]
    size, n_forget = (np.bincount(roots, by, len(texts))[roots] for by in (None, forget))
    # An exact copy of a near duplicate is itself a near duplicate of the text that is kept.
    conditions = [(n_forget > 0) & (n_forget < size), roots == index, same_key == roots]
    return Duplicates(roots, np.select(conditions, ["cross_post", "", "exact"], "near"))


def first_of_key(keys: Iterable[str]) -> NDArray[np.int64]:
    """Return of each text the first one with its key, (n,), by digests of 128 bits."""
    digests = (blake2b(text_key.encode(), digest_size=16).digest() for text_key in keys)
    codes = pa.array(digests, pa.binary(16)).dictionary_encode().indices.to_numpy()
    first: NDArray[np.int64] = np.unique(codes, return_index=True)[1]
    return first[codes]


def near_roots(keys: Sequence[str], threshold: float, words: int) -> NDArray[np.int64]:
    """Return the first of the distinct keys that each is connected to by similar pairs, (n,)."""
    size, hashes, rows, places = _prefixes(keys, threshold, words)
    # Those with the same shingle lie together, by size, so that pairs too unlike in size are left.
    order = np.lexsort((rows, size[rows], hashes))
    hashes, rows, places = hashes[order], rows[order], places[order]
    sizes, starts = size[rows], np.flatnonzero(np.diff(hashes, prepend=hashes[:1] + 1))
    parent = np.arange(len(keys))

    def root(items: NDArray[Any]) -> NDArray[np.int64]:
        while not np.array_equal(above := parent[items], items):
            items = above
        return items

    @lru_cache(maxsize=4096)
    def shingles(row: int) -> frozenset[tuple[str, ...]]:
        tokens = keys[row].split()
        return frozenset(zip(*(tokens[place:] for place in range(words)), strict=False))

    at, step = np.arange(len(rows) - 1), 1
    while len(at):
        # Each with the one so many steps further; sizes rise, so who has none now will have none.
        to = at + step
        alike = (hashes[at] == hashes[to]) & (sizes[at] >= threshold * sizes[to] - _SLACK)
        at, to = at[alike], to[alike]
        least = threshold / (1 + threshold) * (sizes[at] + sizes[to]) - _SLACK
        left = np.minimum(sizes[at] - places[at], sizes[to] - places[to])
        chosen = (left >= least) & (root(rows[at]) != root(rows[to]))
        for i, j in zip(rows[at[chosen]].tolist(), rows[to[chosen]].tolist(), strict=True):
            low, high = np.sort(root(np.array([i, j])))
            if low != high and jaccard(shingles(i), shingles(j)) >= threshold:
                parent[high] = low
        if step.bit_count() == 1:
            # A thousand copies of a form letter are one cluster after the first step: shingles of
            # one cluster alone are done.
            roots = root(rows)
            is_single = np.minimum.reduceat(roots, starts) == np.maximum.reduceat(roots, starts)
            at = at[~is_single[np.searchsorted(starts, at, side="right") - 1]]
        step += 1
        at = at[at + step < len(rows)]
    return root(parent)


def jaccard(a: frozenset[Any], b: frozenset[Any]) -> float:
    """Return |a & b| / |a | b|."""
    shared = len(a & b)
    return shared / (len(a) + len(b) - shared)


def _prefixes(keys: Sequence[str], threshold: float, words: int) -> tuple[NDArray[Any], ...]:
    """Return the sizes (n,) of the sets of shingles and, of the shingles in their prefixes, the
    hash, the row and the place in it."""
    slots = 1 << (SLOTS * len(keys)).bit_length()
    counters = np.zeros(slots, dtype=np.uint32)
    blocks = []
    for _, _, hashed in _blocks(keys, words, "counted for near-duplicates"):
        np.add.at(counters, (hashed % slots).astype(np.int64), 1)
    for texts, row, hashed in _blocks(keys, words, "compared for near-duplicates"):
        count = counters[(hashed % slots).astype(np.int64)]
        order = np.lexsort((hashed, count, row))
        size = np.bincount(row, minlength=len(texts)).astype(np.int32)
        place = np.arange(len(row)) - (np.cumsum(size) - size)[row]
        prefix = size - np.ceil(threshold * size - _SLACK) + 1
        # Of a shingle that no other text has, its place alone counts.
        inside = (place < prefix[row]) & (count[order] > 1)
        blocks.append((size, hashed[order][inside], row[inside] + texts.start, place[inside]))
    return tuple(map(np.concatenate, zip(*blocks, strict=True)))


def _blocks(
    keys: Sequence[str], words: int, purpose: str
) -> Iterator[tuple[range, NDArray[np.int64], NDArray[np.uint64]]]:
    """Yield for each block of ``keys`` (texts in one spelling) its range and its distinct shingles
    of so many ``words``: the text's number in the block, and a hash of 52 bits. Both ascend. A
    shorter text has no shingles."""
    with Progress(len(keys), purpose, "text") as progress:
        for start in range(0, len(keys), ROWS):
            texts = keys[start : start + ROWS]
            divided = pc.split_pattern(pa.array(texts, pa.string()), " ")
            encoded = divided.values.dictionary_encode()
            of_words = pd.util.hash_array(encoded.dictionary.to_numpy(zero_copy_only=False))
            word = of_words[encoded.indices.to_numpy()]
            offsets = divided.offsets.to_numpy().astype(np.int64)
            row = np.repeat(np.arange(len(texts)), np.diff(offsets))
            starts = np.flatnonzero(np.arange(len(word)) + words <= offsets[1:][row])
            hashed = word[starts]
            for place in range(1, words):
                hashed = hashed * np.uint64(0x9E3779B97F4A7C15) + word[starts + place]
            packed = row[starts].astype(np.uint64) << np.uint64(52) | hashed >> np.uint64(12)
            packed.sort()
            packed = packed[np.diff(packed, prepend=packed[:1] + np.uint64(1)) > 0]
            row = (packed >> np.uint64(52)).astype(np.int64)
            yield range(start, start + len(texts)), row, packed & np.uint64(2**52 - 1)
            progress.advance(len(texts))
