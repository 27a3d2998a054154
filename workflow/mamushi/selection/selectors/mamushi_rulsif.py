"""Mamushi with RuLSIF: the density ratio by relative least squares in Gaussian kernels.

Yamada, Suzuki, Kanamori, Hachiya and Sugiyama (2013), "Relative density-ratio estimation for robust
distribution comparison". In place of p1/p2, which is unbounded, they fit the relative ratio

    r_a(x) = p1(x) / (a p1(x) + (1 - a) p2(x)) <= 1/a

by g(x) = sum_l theta_l exp(-|x - c_l|^2 / (2 s^2)) with theta = (H + lambda I)^-1 h, where

    H = a E_1[phi phi^T] + (1 - a) E_2[phi phi^T]  and  h = E_1[phi]

are means over the training examples of the domains, phi the vector of the kernels. The width s and
the penalty lambda minimise J(theta) = theta^T H theta / 2 - h^T theta on parts of the training fold
that the fit did not see. Solving r_a for the ratio gives the score:

    log p1(x)/p2(x) = log((1 - a) r_a(x)) - log(1 - a r_a(x)).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mamushi.selection.crossfit import Task, cross_fit
from mamushi.selection.pca import reduce
from mamushi.selection.pool import BLOCK_BYTES, Pool, Scored

SETTINGS: dict[str, Any] = {
    "folds": {
        "type": "integer",
        "minimum": 2,
        "default": 5,
        "description": "Folds of the stratified cross-fitting.",
    },
    "components": {
        "type": "integer",
        "minimum": 1,
        "default": 64,
        "description": "Principal components that the kernels see; clipped to the training "
        "examples of a fold and to the width of the embeddings.",
    },
    "alpha": {
        "type": "number",
        "minimum": 0,
        "exclusiveMaximum": 1,
        "default": 0.1,
        "description": "Share of the forget distribution in the denominator of the relative "
        "density ratio, which is at most 1 / alpha; 0 is the plain ratio (uLSIF).",
    },
    "centres": {
        "type": "integer",
        "minimum": 1,
        "default": 200,
        "description": "Most forget examples, drawn from the training examples of a fold, on which "
        "a kernel is centred.",
    },
    "widths": {
        "type": "array",
        "items": {"type": "number", "exclusiveMinimum": 0},
        "minItems": 1,
        "default": [0.25, 0.5, 1.0, 2.0, 4.0],
        "description": "Kernel widths to choose from, in units of the median distance.",
    },
    "penalties": {
        "type": "array",
        "items": {"type": "number", "exclusiveMinimum": 0},
        "minItems": 1,
        "default": [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0],
        "description": "Values of lambda to choose from.",
    },
    "inner_folds": {
        "type": "integer",
        "minimum": 2,
        "default": 5,
        "description": "Parts of a fold's training examples for the choice of width and penalty; "
        "clipped to the examples of the smaller domain.",
    },
    "limit": {
        "type": "number",
        "exclusiveMinimum": 0,
        "maximum": 20,
        "default": 8.0,
        "description": "Scores are clipped to this many nats on either side of 0; outside it the "
        "relative ratio is below 0, above 1 / alpha or too near to them to tell.",
    },
}

Doubles = NDArray[np.float64]


def score(pool: Pool, settings: dict[str, Any], seed: int) -> Scored:
    """Out-of-fold estimates of log p1(x)/p2(x) in nats, between plus and minus ``limit``.

    ``details`` as those of ``mamushi``, and per fold the kernel ``width``, the ``penalty``, their
    cross-validated ``loss`` J, the number of ``centres``, how many scores are ``clipped``, the
    components and their share of the variance. Constant embeddings give constant scores. Raises
    ``UserError`` when a domain has too few examples for the folds.
    """

    def estimate(task: Task) -> tuple[Doubles, dict[str, Any]]:
        return estimate_rulsif(task, settings)

    return cross_fit(pool, settings["folds"], seed, estimate, "mamushi_rulsif")


def estimate_rulsif(task: Task, settings: dict[str, Any]) -> tuple[Doubles, dict[str, Any]]:
    """Held-out log-density ratios by RuLSIF in the principal components."""
    rng = np.random.default_rng(task.seed)
    reduced = reduce(task, settings["components"])
    z, forget = reduced.train, task.forget[task.train]
    members = np.flatnonzero(forget)
    count = min(settings["centres"], len(members))
    centres = z[np.sort(rng.choice(members, count, replace=False))]
    part = inner_parts(forget, settings["inner_folds"], rng)
    unit = median_distance(z, centres, rng)
    found = fit(z, centres, forget, part, unit * np.array(settings["widths"]), settings)
    ratio = np.empty(len(task.held))
    for block, kernel in kernels(reduced.held, centres, found.width):
        # A matrix product may round equal rows differently, and so break their ties.
        ratio[block] = (kernel * found.theta).sum(axis=1)
    scores, clipped = log_ratio(ratio, settings["alpha"], settings["limit"])
    return scores, {
        "width": found.width,
        "penalty": found.penalty,
        "loss": found.loss,
        "centres": count,
        "clipped": clipped,
        **reduced.details,
    }


@dataclass(frozen=True)
class Fit:
    """Weights ``theta`` (b,) of the kernels at the chosen ``width`` and ``penalty``, whose mean
    J over the inner folds is ``loss``."""

    theta: Doubles
    width: float
    penalty: float
    loss: float


def fit(
    z: Doubles,
    centres: Doubles,
    forget: NDArray[np.bool_],
    part: NDArray[np.int64],
    widths: Doubles,
    settings: dict[str, Any],
) -> Fit:
    """The best width and penalty by cross-validation over ``part`` (n,), fitted on all rows ``z``.

    Every inner fold's H and h are sums over its rows, so one pass over the kernels per width
    serves all folds and penalties. Of equal losses the first of the settings wins.
    """
    penalties = np.array(settings["penalties"], dtype=np.float64)
    best: Fit | None = None
    for width in widths:
        moments = kernel_moments(z, centres, forget, part, float(width), settings["alpha"])
        loss = cross_validated_loss(moments, penalties)
        i = int(np.argmin(loss))
        if best is None or loss[i] < best.loss:
            second, first = moments.of(np.ones(moments.parts, dtype=np.bool_))
            theta = solve(second, first, penalties[i : i + 1])[:, 0]
            best = Fit(theta, float(width), float(penalties[i]), float(loss[i]))
    assert best is not None
    return best


@dataclass(frozen=True)
class Moments:
    """Sums over the rows of an inner fold i and a domain c, forget first: ``count`` (k, 2),
    ``first`` (k, 2, b) of phi and ``second`` (k, 2, b, b) of phi phi^T."""

    count: NDArray[np.int64]
    first: Doubles
    second: Doubles
    alpha: float

    @property
    def parts(self) -> int:
        """Inner folds."""
        return len(self.count)

    def of(self, chosen: NDArray[np.bool_]) -> tuple[Doubles, Doubles]:
        """H (b, b) and h (b,) of the rows in the inner folds ``chosen`` (k,)."""
        n1, n2 = self.count[chosen].sum(axis=0)
        sum1, sum2 = self.second[chosen].sum(axis=0)
        second: Doubles = self.alpha / n1 * sum1 + (1 - self.alpha) / n2 * sum2
        return second, self.first[chosen, 0].sum(axis=0) / n1


def kernel_moments(
    z: Doubles,
    centres: Doubles,
    forget: NDArray[np.bool_],
    part: NDArray[np.int64],
    width: float,
    alpha: float,
) -> Moments:
    """``Moments`` of the kernels of one width over the rows ``z`` (n, k)."""
    parts, b = int(part.max()) + 1, len(centres)
    count = np.zeros((parts, 2), dtype=np.int64)
    first = np.zeros((parts, 2, b))
    second = np.zeros((parts, 2, b, b))
    for i in range(parts):
        for domain, members in enumerate((forget, ~forget)):
            rows = np.flatnonzero(members & (part == i))
            count[i, domain] = len(rows)
            for _, kernel in kernels(z[rows], centres, width):
                first[i, domain] += kernel.sum(axis=0)
                second[i, domain] += kernel.T @ kernel
    return Moments(count, first, second, alpha)


def cross_validated_loss(moments: Moments, penalties: Doubles) -> Doubles:
    """Mean over the inner folds of J (p,) at every penalty, fitted on the other inner folds."""
    total = np.zeros(len(penalties))
    for i in range(moments.parts):
        held = np.arange(moments.parts) == i
        theta = solve(*moments.of(~held), penalties)
        second, first = moments.of(held)
        total += np.einsum("bp,bp->p", theta, second @ theta) / 2 - first @ theta
    return total / moments.parts


def solve(second: Doubles, first: Doubles, penalties: Doubles) -> Doubles:
    """theta = (H + lambda I)^-1 h as columns (b, p), from one eigendecomposition of H for all
    lambda."""
    values, vectors = np.linalg.eigh(second)
    values = np.maximum(values, 0)  # Rounding may make a zero negative.
    rotated = (vectors.T @ first)[:, None]
    theta: Doubles = vectors @ (rotated / (values[:, None] + penalties))
    return theta


def kernels(z: Doubles, centres: Doubles, width: float) -> Iterator[tuple[slice, Doubles]]:
    """exp(-|z - c|^2 / (2 width^2)) in blocks of rows (rows, b) of bounded memory."""
    rows = max(1, BLOCK_BYTES // (8 * len(centres)))
    for start in range(0, len(z), rows):
        block = slice(start, min(start + rows, len(z)))
        squared = squared_distances(z[block], centres)
        squared /= -2 * width**2
        yield block, np.exp(squared, out=squared)


def squared_distances(z: Doubles, centres: Doubles) -> Doubles:
    """|z - c|^2 (n, b), no less than 0."""
    squared = -2 * (z @ centres.T)
    squared += np.einsum("ij,ij->i", z, z)[:, None]
    squared += np.einsum("ij,ij->i", centres, centres)
    return np.maximum(squared, 0, out=squared)


def median_distance(
    z: Doubles, centres: Doubles, rng: np.random.Generator, most: int = 1000
) -> float:
    """Median distance of at most ``most`` rows, drawn by ``rng``, to the centres.

    Distances that are zero but for rounding, of a centre to itself and to its copies, do not count;
    without any other it is 1, where no width could matter.
    """
    rows = rng.choice(len(z), min(most, len(z)), replace=False)
    squared = squared_distances(z[rows], centres)
    scale = max(float(np.square(z).sum(axis=1).max()), np.finfo(np.float64).tiny)
    apart = squared[squared > 1e-10 * scale]
    return float(np.median(np.sqrt(apart))) if len(apart) else 1.0


def inner_parts(forget: NDArray[np.bool_], k: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Inner fold (n,) of every training example, by domain, of min(k, n1, n2) folds.

    The outer folds leave two examples of either domain, so there are two at least.
    """
    k = min(k, int(forget.sum()), int((~forget).sum()))
    part = np.empty(len(forget), dtype=np.int64)
    for domain in (forget, ~forget):
        members = np.flatnonzero(domain)
        part[rng.permutation(members)] = np.arange(len(members)) % k
    return part


def log_ratio(relative: Doubles, alpha: float, limit: float) -> tuple[Doubles, int]:
    """log((1 - a) r_a) - log(1 - a r_a) in nats of the relative ratios r_a, and how many of them
    lie outside plus or minus ``limit`` nats, or outside (0, 1/a), and are clipped to it."""
    low, high = (
        np.exp(end) / (alpha * np.exp(end) + 1 - alpha) for end in (-float(limit), float(limit))
    )
    clipped = int(((relative < low) | (relative > high)).sum())
    inside = np.clip(relative, low, high)
    scores = np.log((1 - alpha) * inside) - np.log1p(-alpha * inside)
    return np.clip(scores, -limit, limit), clipped
