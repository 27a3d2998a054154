"""Directions of embeddings: cosine distance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]


def cosine_distances(along: Doubles, squares: Doubles, mu: Doubles) -> Doubles:
    """d_cos(x, mu) = 1 - x.mu / (|x| |mu|) (n, m), 1 from or to zero.

    ``along`` (n, m) are the products x.mu with the rows of ``mu`` (m, d), ``squares`` (n,) the
    |x|^2, as ``statistics.products`` gives them.
    """
    norms = np.sqrt(squares)[:, None] * np.linalg.norm(mu, axis=1)
    distances: Doubles = 1 - along / np.where(norms == 0, 1, norms)
    return distances
