"""Directions of embeddings: unit vectors and cosine distance."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def unit(x: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    """Rows of ``x`` (n, d) divided by their norms; a row of zeros has no direction and stays."""
    norm = np.linalg.norm(x, axis=1, keepdims=True)
    directions: NDArray[np.floating[Any]] = x / np.where(norm == 0, 1, norm)
    return directions


def cosine_distance(
    x: NDArray[np.floating[Any]], mu: NDArray[np.floating[Any]]
) -> NDArray[np.floating[Any]]:
    """d_cos(x, mu) = 1 - x.mu / (|x| |mu|) of the rows of ``x`` (n, d); 1 from or to zero."""
    distance: NDArray[np.floating[Any]] = 1 - unit(x) @ unit(mu[None])[0]
    return distance
