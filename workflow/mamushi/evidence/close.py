"""Texts that stay and say the same as one that was removed: other order, other words in between, or
a quote inside a longer text. A model that is retrained without a text still learns it from these.

Windows of ``WINDOW`` words of the removed texts are looked for in windows of twice as many words of
the texts that stay, so that what is quoted lies in one. With W the telling words of a removed
window, those that few texts have, and n_w of n texts having the word w,

    share = sum over the shared w in W of log(n / n_w) / sum over all w in W of log(n / n_w)

A pair matches where the share reaches ``SHARE`` and its numerator exceeds the logarithm of the
number of pairs of windows by ``EVIDENCE`` nats. The order of words does not count. Words are not
independent, so that among ten thousand texts that restate nothing some ten are found
(benchmarks/close.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mamushi.data.duplicates import key
from mamushi.data.scripts import has_unspaced, pairs, parted

WINDOW = 24
SHARE, EVIDENCE = 0.5, 5.0
COMMON, FEWEST, MOST = 0.02, 5, 1000
"""A word is telling that at most this share of the texts have, or so few, and no more than so many:
that bounds the time."""
BLOCK = 4096
"""Windows of removed texts that are looked for at a time."""


class Close(NamedTuple):
    """A kept text, the removed one that it restates most of, and how much (see above), with the
    number of shared telling words."""

    kept: int
    removed: int
    share: float
    words: int


def close(removed: Sequence[str], kept: Sequence[str]) -> list[Close]:
    """Return the kept texts that restate a removed one, those that restate most first; texts by
    their places."""
    from sklearn.feature_extraction.text import CountVectorizer

    texts = [_words(text) for text in (*removed, *kept)]
    counter = CountVectorizer(analyzer=lambda words: words, binary=True, dtype=np.float64)
    if not any(texts):
        return []
    frequency = np.asarray(counter.fit_transform(texts).sum(axis=0)).ravel()
    n = len(texts)
    telling = frequency <= np.clip(COMMON * n, FEWEST, MOST)
    weight = np.where(telling, np.log(n / frequency), 0.0)

    def windows(these: Sequence[list[str]], size: int, step: int) -> tuple[NDArray[np.int64], Any]:
        rows, found = [], []
        for row, words in enumerate(these):
            for begin in _begins(len(words), size, step):
                rows.append(row)
                found.append(words[begin : begin + size])
        return np.array(rows, dtype=np.int64), counter.transform(found)

    of_removed, removed_words = windows(texts[: len(removed)], WINDOW, WINDOW)
    of_kept, kept_words = windows(texts[len(removed) :], 2 * WINDOW, WINDOW)
    best: dict[int, Close] = {}
    if len(of_removed) and len(of_kept):
        least = np.log(float(len(of_removed)) * len(of_kept)) + EVIDENCE
        for one, other, share, words in _matches(removed_words, kept_words, weight, least):
            found = Close(int(of_kept[other]), int(of_removed[one]), share, words)
            if found.kept not in best or found.share > best[found.kept].share:
                best[found.kept] = found
    return sorted(best.values(), key=lambda each: (-each.share, each.kept))


def _words(text: str) -> list[str]:
    """Return the words of a text, and of scripts without spaces each two letters: one tells little
    and a sentence is seldom restated."""
    found = re.findall(r"\w+", key(text))
    if not has_unspaced(text):
        return found
    parts = (part for word in found for part in parted(word))
    return [unit for part in parts for unit in (pairs(part) if has_unspaced(part) else [part])]


def _begins(length: int, size: int, step: int) -> range:
    """Return where windows begin: the last one ends with the text."""
    return range(0, max(length - size + step, 1), step) if length else range(0)


def _matches(
    removed: Any, kept: Any, weight: NDArray[np.float64], least: float
) -> Iterator[tuple[int, int, float, int]]:
    """Yield the pairs of windows that match, by their rows, with the share and the number of
    telling words that both have. The words are sparse (windows, words), 1 where a window has one.
    """
    from scipy import sparse

    known, weighed = sparse.diags((weight > 0).astype(np.float64)), sparse.diags(weight)
    others = kept.T.tocsr()
    for begin in range(0, removed.shape[0], BLOCK):
        block = removed[begin : begin + BLOCK]
        whole = block @ weight
        shared = (block @ weighed @ others).tocoo()
        count = (block @ known @ others).tocsr()
        matching = (shared.data >= least) & (shared.data >= SHARE * whole[shared.row])
        for at in np.flatnonzero(matching).tolist():
            row, column = int(shared.row[at]), int(shared.col[at])
            share = float(shared.data[at] / whole[row])
            yield begin + row, column, share, int(count[row, column])
