"""How much two rankings agree on what to remove."""

import numpy as np
from numpy.typing import NDArray


def overlap(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.float64]:
    """Share of the first k = 1..n of two rankings (n,) of the same texts that both have: (n,)."""
    places = np.empty_like(second)
    places[second] = np.arange(len(second))
    both = np.maximum(np.arange(len(first)), places[first])
    return np.cumsum(np.bincount(both, minlength=len(first))) / np.arange(1, len(first) + 1)
