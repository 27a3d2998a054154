"""Texts that stay and say the same as one that was removed: other order, other words in between, or
a quote inside a longer text. A model that is retrained without a text still learns it from these.

Windows of ``WINDOW`` words of the removed texts are looked for in windows of twice as many words of
the texts that stay, so that what is quoted lies in one. With W the telling words of a removed
window, those that few texts have, and n_w of n texts having the word w,

    share = sum over the shared w in W of log(n / n_w) / sum over all w in W of log(n / n_w)

A pair is told where the share reaches ``SHARE`` and its numerator exceeds the logarithm of the
number of pairs of windows by ``EVIDENCE`` nats: words drawn by chance would share that once in
exp(EVIDENCE) corpora. The order of words does not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mamushi.data.duplicates import key

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

    texts = [re.findall(r"\w+", key(text)) for text in (*removed, *kept)]
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

    ours, sought = windows(texts[: len(removed)], WINDOW, WINDOW)
    theirs, there = windows(texts[len(removed) :], 2 * WINDOW, WINDOW)
    best: dict[int, Close] = {}
    if len(ours) and len(theirs):
        least = np.log(float(len(ours)) * len(theirs)) + EVIDENCE
        for at, pair in _pairs(sought, there, weight, least):
            found = Close(int(theirs[pair[1]]), int(ours[pair[0] + at]), *pair[2:])
            if found.kept not in best or found.share > best[found.kept].share:
                best[found.kept] = found
    return sorted(best.values(), key=lambda each: (-each.share, each.kept))


def _begins(length: int, size: int, step: int) -> range:
    """Return where windows begin: the last one ends with the text."""
    return range(0, max(length - size + step, 1), step) if length else range(0)


def _pairs(
    sought: Any, there: Any, weight: NDArray[np.float64], least: float
) -> Iterator[tuple[int, tuple[int, int, float, int]]]:
    """Yield the pairs of windows that are told, of a block that begins ``at``: their rows, the
    share, and the number of shared telling words."""
    from scipy import sparse

    known, weighed = sparse.diags((weight > 0).astype(np.float64)), sparse.diags(weight)
    others = there.T.tocsr()
    for at in range(0, sought.shape[0], BLOCK):
        block = sought[at : at + BLOCK]
        whole = block @ weight
        shared = (block @ weighed @ others).tocoo()
        count = (block @ known @ others).tocsr()
        told = (shared.data >= least) & (shared.data >= SHARE * whole[shared.row])
        for row, column, value in zip(
            shared.row[told].tolist(),
            shared.col[told].tolist(),
            shared.data[told].tolist(),
            strict=True,
        ):
            yield at, (row, column, value / whole[row], int(count[row, column]))
