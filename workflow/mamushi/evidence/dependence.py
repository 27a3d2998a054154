"""Look for texts that are not independent: by their groups, or by neighbours that are too close.

Of independent texts of a smooth density, with d_k the distance to the k-th nearest neighbour in D
dimensions, the spacings k log(d_(k+1) / d_k) are exponential with mean 1/D for all k (Facco et al.
2017). Where a domain ends or is curved, or has noise in more dimensions, those of small k are
smaller. Texts of a group are each other's neighbours, and after the last of them comes a gap: the
spacings of small k are *larger* than those of the next ones. That is what is tested, one-sided. A
group that lies no closer than other texts of its topic is not seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mamushi.data.groups import GroupCodes
from mamushi.selection.arrays import Doubles, Mask

NEAREST = 12
"""Spacings of a text."""
CONTRASTS = ((slice(0, 1), slice(1, 4)), (slice(1, 5), slice(6, NEAREST)))
"""Spacings, from k = 1, of which the first must not exceed the second on the mean: for pairs, and
for groups of three to six."""
LARGEST = 5
"""Neighbours that a text may be grouped with."""
SURPRISE = 0.005
"""The chance of a spacing from which a text is grouped with those before it."""
_FEWEST = 30
"""Texts of a domain below which its neighbours are not looked at."""
MOST_QUERIES = 20_000
"""Texts of a domain, drawn if there are more, whose neighbours are looked at."""
CELLS = 2**24
"""Distances that are held at a time."""


@dataclass(frozen=True)
class Close:
    """Among the texts that were ``looked_at`` there are ``texts`` with neighbours closer than
    spacings of independent texts allow, ``dependent`` if more of them than by chance (level 5%). By
    ``groups`` (n,) they belong together; None where not all texts were looked at."""

    looked_at: int
    texts: int
    dependent: bool
    groups: GroupCodes | None


def close_texts(embeddings: NDArray[Any], forget: Mask, seed: int = 0) -> Close:
    """Look for texts that are too close to others of their domain, by embeddings (n, d)."""
    # Here, since most who import this module look for nothing.
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    rng, chances, edges, looked_at = np.random.default_rng(seed), [], [], 0
    for domain in (forget, ~forget):
        rows = np.flatnonzero(domain)
        if len(rows) < _FEWEST:
            continue
        queries = np.sort(rng.choice(len(rows), min(len(rows), MOST_QUERIES), replace=False))
        spacing, near = spacings(np.asarray(embeddings[rows]), queries)
        looked_at += len(queries)
        chances += [p_of_spacings(spacing, near[:, 0], *contrast) for contrast in CONTRASTS]
        last = _last_close(spacing)
        edges += [
            (rows[queries[i]], rows[near[i, k]]) for i, n in enumerate(last) for k in range(n)
        ]
    first, second = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    n = len(forget)
    graph = coo_array((np.ones(len(first)), (first, second)), shape=(n, n)).tocsr()
    # Only where both say so: by chance one of many texts has a gap after others' neighbours.
    graph = graph.multiply(graph.T)
    _, groups = connected_components(graph, directed=False)
    whole = max(forget.sum(), (~forget).sum()) <= MOST_QUERIES
    return Close(
        looked_at,
        len(np.unique(graph.nonzero()[0])),
        min(chances, default=1.0) * len(chances) < 0.05,
        groups.astype(np.int64) if whole else None,
    )


def spacings(x: NDArray[Any], queries: GroupCodes) -> tuple[Doubles, GroupCodes]:
    """Return k log(d_(k+1) / d_k) of ``queries`` (m,) among x (n, d), (m, NEAREST), and the places
    of their neighbours, nearest first."""
    x = x.astype(np.float32)
    x -= x.mean(axis=0)
    # By angles: of lengths that differ, the shortest vectors would be the neighbours of all.
    x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), np.finfo(np.float32).tiny)
    most = NEAREST + 1
    near = np.empty((len(queries), most), dtype=np.int64)
    step = max(1, CELLS // len(x))
    for start in range(0, len(queries), step):
        block = queries[start : start + step]
        away = -(x[block] @ x.T)
        away[np.arange(len(block)), block] = np.inf
        near[start : start + step] = np.argpartition(away, most, axis=1)[:, :most]
    # The differences themselves, since those of squares lose small distances.
    away = np.stack([np.linalg.norm(x[queries] - x[near[:, k]], axis=1) for k in range(most)], 1)
    order = np.argsort(away, axis=1, kind="stable")
    away = np.take_along_axis(away, order, axis=1).astype(np.float64)
    apart = np.diff(np.log(np.maximum(away, np.finfo(np.float32).tiny)), axis=1)
    return np.arange(1, most) * apart, np.take_along_axis(near, order, axis=1)


def p_of_spacings(spacing: Doubles, nearest: GroupCodes, first: slice, then: slice) -> float:
    """Test whether the ``first`` spacings are larger than those ``then``; return a one-sided p.

    Spacings are means over texts (m,). Texts with the same ``nearest`` neighbour (m,) depend on
    each other; two that are each other's nearest count once.
    """
    from scipy.special import ndtr

    excess = spacing[:, first].mean(axis=1) - spacing[:, then].mean(axis=1)
    shared = np.bincount(nearest, excess - excess.mean())
    error = float(np.sqrt(2 * (shared**2).sum())) / len(excess)
    return float(ndtr(-excess.mean() / error)) if error > 0 else 1.0


def _last_close(spacing: Doubles) -> GroupCodes:
    """Return after how many neighbours a text (m,) has a gap that independent ones hardly have."""
    usual = float(spacing[:, LARGEST + 1 :].mean())
    gap = spacing[:, :LARGEST] > -np.log(SURPRISE) * usual
    return np.where(gap.any(axis=1), LARGEST - np.argmax(gap[:, ::-1], axis=1), 0)
