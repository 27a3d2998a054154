"""Tokens that are left out of a training's loss in the place of whole texts."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def highest_spans(
    ratios: Sequence[NDArray[np.float32]], k: int
) -> dict[int, list[tuple[int, int]]]:
    """Return the ``k`` tokens of highest ratio, as spans (start, stop) by the place of their text.

    ``ratios`` are each text's, of its tokens but the first, which is not predicted; so a text's
    spans begin at 1. Ties by place.
    """
    flat = np.concatenate([np.empty(0, np.float32), *ratios])
    among_highest = np.zeros(len(flat), dtype=bool)
    among_highest[np.argsort(-flat, kind="stable")[:k]] = True
    parts = np.split(among_highest, np.cumsum([len(each) for each in ratios])[:-1])
    found = {}
    for place, own in enumerate(parts):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], own.astype(np.int8), [0]])))
        if len(edges):
            found[place] = [(int(a) + 1, int(b) + 1) for a, b in edges.reshape(-1, 2)]
    return found
