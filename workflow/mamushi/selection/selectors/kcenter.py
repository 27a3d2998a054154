"""Greedy k-center over the forget set: farthest first, and the order is the ranking.

Paper, Appendix "Baselines"; Sener and Savarese (2018). After a seeded first centre c1, the next is

    c_{t+1} = argmax_x min_{s <= t} |x - c_s|_2,

and the score of a centre is that distance when it was picked, which never grows along the order.
The first centre gets the score of the second: the largest distance from it. Retain examples have
none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mamushi.selection.pool import Pool, Scored

SETTINGS: dict[str, Any] = {
    "gram_gib": {
        "type": "number",
        "minimum": 0,
        "default": 4.0,
        "description": "Memory in GiB for the matrix of all squared distances in float32; a forget "
        "set that needs more is ranked with one matrix-vector product per centre, which is slower.",
    },
}

Singles = NDArray[np.float32]


def score(pool: Pool, settings: dict[str, Any], seed: int) -> Scored:
    """Distance to the nearest earlier centre, and the order in which centres were picked.

    Points go by id: the first of several farthest has the lowest id, and the seed draws the same
    first centre whatever the order of the rows.
    """
    members = pool.forget_by_id()
    x = pool.embeddings[members].astype(np.float32)
    # Distances do not change, and the differences of large products that make them lose less.
    x -= x.mean(axis=0, dtype=np.float64).astype(np.float32)
    fits = 4 * len(x) ** 2 <= settings["gram_gib"] * 2**30
    first = int(np.random.default_rng(seed).integers(len(x)))
    picks, radii = farthest_first(first, len(x), gram_rows(x) if fits else product_rows(x))
    scores = np.full(len(pool.ids), np.nan)
    scores[members[picks]] = radii
    return Scored(
        scores, order=members[picks], details={"distances": "gram" if fits else "matrix-vector"}
    )


def farthest_first(
    first: int, n: int, squared_distances: Callable[[int], Singles]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Order (n,) of all points, and each one's distance to the nearest earlier point.

    ``squared_distances(i)`` gives those of all n points from point i. Memory beyond it is O(n).
    """
    picks = np.empty(n, dtype=np.int64)
    radii = np.zeros(n)
    nearest = np.full(n, np.inf, dtype=np.float32)
    pick = first
    for t in range(n):
        picks[t] = pick
        if t > 0:
            radii[t] = np.sqrt(np.float64(nearest[pick]))
        np.minimum(nearest, squared_distances(pick), out=nearest)
        nearest[pick] = -np.inf
        pick = int(np.argmax(nearest))
    radii[0] = radii[1] if n > 1 else 0.0
    return picks, radii


def gram_rows(x: Singles) -> Callable[[int], Singles]:
    """Squared distances |x_i|^2 + |x_j|^2 - 2 x_i.x_j of all pairs at once, in one matrix."""
    distances = x @ x.T
    squares = np.diagonal(distances).copy()
    distances *= -2
    distances += squares
    distances += squares[:, None]
    np.maximum(distances, 0, out=distances)
    return distances.__getitem__


def product_rows(x: Singles) -> Callable[[int], Singles]:
    """The same distances, a row when it is asked for."""
    squares = np.einsum("ij,ij->i", x, x)
    return lambda i: np.maximum(squares + squares[i] - 2 * (x @ x[i]), 0)
