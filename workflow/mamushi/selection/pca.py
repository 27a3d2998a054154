"""Principal components of a fold's training examples, for estimators that need few dimensions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mamushi.selection.crossfit import Task
from mamushi.selection.pool import BLOCK_BYTES

Doubles = NDArray[np.float64]

OVERSAMPLES = 10
ITERATIONS = 7


@dataclass(frozen=True)
class Reduced:
    """Coordinates along the leading principal components: ``train`` (n, k) and ``held`` (m, k) in
    the order of the task's rows, and ``share``, the part of the training variance that they hold.
    """

    train: Doubles
    held: Doubles
    share: float

    @property
    def details(self) -> dict[str, Any]:
        """k and the share of the variance, ready for JSON."""
        return {"components": self.train.shape[1], "variance": self.share}


def reduce(task: Task, components: int) -> Reduced:
    """The standardised embeddings of a fold along their first k = min(``components``, n, d) axes.

    The axes are the leading right singular vectors of the training rows X (n, d), which the
    standardisation has centred, by the randomised SVD of Halko, Martinsson and Tropp (2011) with
    the task's seed. Constant embeddings hold no variance: coordinates and share are then 0.
    """
    axes, share = principal_axes(task, min(components, len(task.train), task.embeddings.shape[1]))
    return Reduced(project(task, task.train, axes), project(task, task.held, axes), share)


def principal_axes(task: Task, k: int) -> tuple[Doubles, float]:
    """Axes (d, k), by falling variance, of the training rows, and their share of the variance.

    Subspace iteration Q <- qr(X^T X Q) from a random Q (d, k + 10), then the eigenvectors of
    Q^T X^T X Q. In float64, because a tree may turn the last digit of a coordinate into another
    split, and float32 sums differ with the number of threads.
    """
    n, d = len(task.train), task.embeddings.shape[1]
    rng = np.random.default_rng(task.seed)
    sketch = np.linalg.qr(rng.normal(size=(d, min(k + OVERSAMPLES, n, d))))[0]
    for _ in range(ITERATIONS):
        product = np.zeros_like(sketch)
        for _, x in standardised(task, task.train):
            product += x.T @ (x @ sketch)
        sketch = np.linalg.qr(product)[0]
    inner, total = np.zeros((sketch.shape[1],) * 2), 0.0
    for _, x in standardised(task, task.train):
        y = x @ sketch
        inner += y.T @ y
        total += float(np.einsum("ij,ij->", x, x))
    values, vectors = np.linalg.eigh(inner)
    axes: Doubles = sketch @ vectors[:, ::-1][:, :k]
    # Of a vector and its negative, the one whose largest entry is positive.
    axes *= np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(k)])
    return axes, float(values[::-1][:k].sum() / total) if total else 0.0


def project(task: Task, rows: NDArray[np.int64], axes: Doubles) -> Doubles:
    """Coordinates (len(rows), k) of the standardised embeddings along ``axes`` (d, k)."""
    out = np.empty((len(rows), axes.shape[1]))
    for part, x in standardised(task, rows):
        out[part] = x @ axes
    return out


def standardised(task: Task, rows: NDArray[np.int64]) -> Iterator[tuple[slice, Doubles]]:
    """``task.features`` of consecutive ``rows`` as float64, in blocks of bounded memory."""
    count = max(1, BLOCK_BYTES // (8 * task.embeddings.shape[1]))
    for start in range(0, len(rows), count):
        part = slice(start, min(start + count, len(rows)))
        yield part, task.features(rows[part]).astype(np.float64)
