"""Which tokens of the forget texts carry the domain: a ratio for each, and its highest ones.

A linear head on a text's embedding, the mean of its tokens' hidden states h_t, gives the mean of
the same head on each of them: the logit w (sum_t h_t / T) + b is the mean over t of w h_t + b. So
the heads that rank texts give every token its share of the logit without further training, and
heads that were fitted without a fold's texts give it for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mamushi.selection.linear import logistic

Doubles = NDArray[np.float64]
Floats = NDArray[np.float32]


def heads(
    embeddings: NDArray[np.float16], forget: NDArray[np.bool_], fold: NDArray[np.int16], prior: float
) -> tuple[Doubles, Doubles]:
    """Weights (folds, d) and intercepts (folds,) of a logistic regression of the domain on
    embeddings (n, d), each fitted without the texts of its fold.

    Columns are standardised as for the selector ``linear``, whose ``prior`` it has; the weights are
    those of raw columns. Raises ``UserError`` when one does not converge.
    """
    folds, d = int(fold.max()) + 1, embeddings.shape[1]
    weights, intercepts = np.empty((folds, d)), np.empty(folds)
    # An affine function is known by its values at 0 and at the unit vectors.
    probes = np.vstack([np.zeros((1, d), np.float32), np.eye(d, dtype=np.float32)])
    for k in range(folds):
        x = embeddings[fold != k].astype(np.float32)
        mean, scale = x.mean(axis=0, dtype=np.float64), x.std(axis=0, dtype=np.float64)
        scale[scale <= np.abs(mean) * np.finfo(np.float32).eps] = np.inf
        x = ((x - mean) / scale).astype(np.float32)
        values = logistic(x, forget[fold != k], probes, prior / d)
        weights[k] = (values[1:] - values[0]) / scale
        intercepts[k] = values[0] - weights[k] @ mean
    return weights, intercepts


def highest(ratios: Sequence[Floats], k: int) -> dict[int, list[tuple[int, int]]]:
    """The ``k`` tokens of highest ratio, as spans (start, stop) by the place of their text.

    ``ratios`` are each text's, of its tokens but the first, which is not predicted; so a text's
    spans begin at 1. Ties by place.
    """
    flat = np.concatenate([np.empty(0, np.float32), *ratios])
    chosen = np.zeros(len(flat), dtype=bool)
    chosen[np.argsort(-flat, kind="stable")[:k]] = True
    parts = np.split(chosen, np.cumsum([len(each) for each in ratios])[:-1])
    found = {}
    for place, own in enumerate(parts):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], own.astype(np.int8), [0]])))
        if len(edges):
            found[place] = [(int(a) + 1, int(b) + 1) for a, b in edges.reshape(-1, 2)]
    return found


def tokens_of(spans: Mapping[object, Sequence[tuple[int, int]]]) -> int:
    """How many tokens lie in the spans."""
    return sum(stop - start for own in spans.values() for start, stop in own)
