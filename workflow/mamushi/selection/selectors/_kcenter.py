"""The greedy choice of the selector ``kcenter``, in the order of exact arithmetic."""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mamushi.errors import UserError
from mamushi.selection.pool import Pool, Scored

Singles = NDArray[np.float32]
Halves = NDArray[np.float16]

GRAM = 4 * 2**30
"""Bytes up to which all products are one matrix; else one product per centre, which is slower."""
ERROR = 2.0
"""A float32 product of d terms is taken to be off by less than ERROR sqrt(d) roundings of |x| |y|:
rounding errors add up like a random walk (Higham and Mary, 2019), and the largest of millions that
were measured is a thirtieth of it."""
MOST = 60_000
"""Forget texts that are ranked: each is compared with each. By calculation, two hours with
embeddings of width 4096; a million would take 18 days."""


def score(pool: Pool, settings: object, seed: int) -> Scored:
    """Score by the distance to the nearest earlier centre, in the order in which centres are
    picked.

    Points go by id: the first of several farthest has the lowest id, and the seed draws the same
    first centre whatever the order of the rows. Raises ``UserError`` for more than ``MOST`` points.
    """
    members = pool.forget_by_id()
    if len(members) > MOST:
        raise UserError(f"k-center takes at most {MOST:,} forget texts, not {len(members):,}")
    half = pool.embeddings[members]
    x = half.astype(np.float32)
    # Distances do not change, and the differences of large products that make them lose less.
    x -= x.mean(axis=0, dtype=np.float64).astype(np.float32)
    first = int(np.random.default_rng(seed).integers(len(x)))
    squares = np.einsum("ij,ij->i", x, x)
    # Of a matrix and its own transpose, numpy computes one half.
    product = (x @ x.T).__getitem__ if 4 * len(x) ** 2 <= GRAM else lambda i: x @ x[i]
    picks, radii = farthest_first(first, half, squares, product)
    scores = np.full(len(pool.ids), np.nan)
    scores[members[picks]] = radii
    return Scored(scores, order=members[picks])


def farthest_first(
    first: int, half: Halves, squares: Singles, product: Callable[[int], Singles]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the order (n,) of the points ``half`` (n, d), and each one's distance to the nearest
    earlier one.

    ``squares`` (n,) are the squared norms of the centred points in float32, and ``product(i)``
    gives their products (n,) with point i. Of equally far points the first comes first. Memory
    beyond the arguments is O(n).
    """
    n, d = half.shape
    unit = ERROR * np.sqrt(d) * np.finfo(np.float32).eps / 2
    picks = np.empty(n, dtype=np.int64)
    radii = np.zeros(n)
    nearest = np.full(n, np.inf, dtype=np.float32)
    picked = np.zeros(n, dtype=np.bool_)

    @lru_cache(maxsize=64)  # What was nearly picked soon will be.
    def distances(i: int) -> Singles:
        row = product(i) * np.float32(-2)
        row += squares
        row += squares[i]
        return row

    # |x| |y| <= (|x|^2 + |y|^2) / 2 and |y|^2 <= 2 |x|^2 + 2 |x - y|^2 bound the error of a squared
    # distance by the point alone and the distance itself: point_errors + share * distance.
    point_errors = (unit * 4 * squares).astype(np.float32)
    share = np.float32(2 * unit)

    def exact(i: int, row: Singles) -> float:
        """Return the squared distance of point i to the nearest centre."""
        near = np.flatnonzero(row <= nearest[i] + 2 * (point_errors[i] + share * abs(nearest[i])))
        difference = half[near[picked[near]]].astype(np.float64) - half[i]
        return float(np.square(difference).sum(axis=1).min())

    pick, row = first, distances(first)
    for t in range(n):
        picks[t] = pick
        picked[pick] = True
        np.minimum(nearest, row, out=nearest)
        nearest[pick] = -np.inf
        if t + 1 == n:
            break
        top = int(nearest.argmax())
        least = nearest[top] * (1 - share) - point_errors[top]
        best = -1.0
        for i in np.flatnonzero(nearest * (1 + share) + point_errors >= least).tolist():
            its = distances(i)
            squared = exact(i, its)
            if squared > best:
                pick, row, best = i, its, squared
        radii[t + 1] = np.sqrt(best)
    radii[0] = radii[1] if n > 1 else 0.0
    return picks, radii
