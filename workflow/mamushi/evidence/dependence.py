"""Ask whether texts come in groups that no column names, such as authors, threads or near copies.

Scores that learned from some texts of a group know the others, and the AUC is too high; none of
this shows in the variance between texts. Of independent texts the domains of two are independent
once their vectors are known: what a smooth function of the vectors leaves of the domain, r, is then
as often alike as not between near texts. With the weight K of a pair, as in Moran (1950),

    z = sum K_ij r_i r_j / sqrt(2 sum K_ij^2 r_i^2 r_j^2),    K_ij = min(max(cos_ij, 0), 1/2)^3

is standard normal. The smooth function is linear in the whitened vectors, with a level for each of
a few clusters, and the square and the cube of its own fit; what it takes out of r is taken out of K
too. Topics are not seen, nor groups that share little but the direction of the domains.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mamushi.data.groups import GroupCodes
from mamushi.selection.arrays import Doubles, Mask
from mamushi.selection.folds import has_groups

SURE = 1.645  # The z beyond which texts come in groups: one-sided, at a level of 5%.
CLOSEST = 0.5  # Cosine above which pairs count alike, so that a few copies do not outweigh all.
MOST_DIRECTIONS, TEXTS_A_DIRECTION = 64, 10  # At most, and texts that one takes at least.
MOST_CLUSTERS, TEXTS_A_CLUSTER, ROUNDS = 20, 50, 10  # The same, and rounds of moving texts.
FEWEST, MOST_LOOKED_AT = 30, 20_000  # Of a domain at least, and of both: drawn if there are more.
CELLS = 2**21  # Pairs that are held at a time.


@dataclass(frozen=True)
class Dependence:
    """How texts depend on each other: the number of their ``groups``, of one text or more; or,
    without groups, how many were ``looked_at``, and the ``z`` of what near ones share."""

    groups: int | None = None
    looked_at: int = 0
    z: float | None = None

    @property
    def reason(self) -> str | None:
        """Say why no interval can rest on these texts, if none can."""
        if self.z is None or self.z <= SURE:
            return None
        return (
            "near texts are of one domain more often than their vectors explain, so they come in "
            "groups or topics that the scores have learned: give the dataset a 'group'"
        )

    def ends(
        self, value: float, low: float | None, high: float | None
    ) -> tuple[float | None, float | None]:
        """Return the interval that an AUC has, of one for texts in their groups: none if these are
        hidden. Doubt that is not enough for that moves the lower end, since what groups teach makes
        an AUC too high: as far again for each unit of z."""
        if self.reason or low is None:
            return None, None
        return max(value - (value - low) * (1 + max(self.z or 0.0, 0.0)), 0.0), high

    def words(self) -> str:
        if self.groups is not None:
            return f"intervals are by {self.groups} groups of texts"
        if self.reason:
            return f"no interval holds: {self.reason}"
        near = ": near ones share no more than their vectors explain "
        near += "(large or weak groups are not seen)"
        return "texts are taken as independent" + (near if self.z is not None else "")


def dependence(
    embeddings: NDArray[Any], forget: Mask, groups: GroupCodes | None = None
) -> Dependence:
    """Return how far texts depend on each other: by their ``groups`` or, without these, by whether
    texts with near ``embeddings`` (n, d) share a domain more often than chance."""
    if has_groups(groups):
        return Dependence(groups=len(np.unique(groups)))
    n = min(len(forget), MOST_LOOKED_AT)
    rows = np.arange(n)
    if n < len(forget):
        rows = np.sort(np.random.default_rng(0).choice(len(forget), n, replace=False))
    domain = forget[rows].astype(np.float64)
    if min(domain.sum(), n - domain.sum()) < FEWEST:
        return Dependence()
    directions = whiten(embeddings[rows])
    # What may explain the domain, before its own fit to that.
    columns = np.column_stack([np.ones(n), directions, clusters(directions)])
    basis = orthonormal(columns)
    fit = basis @ (basis.T @ domain) - domain.mean()
    smooth = orthonormal(np.column_stack([columns, fit**2, fit**3]))
    residual = domain - smooth @ (smooth.T @ domain)
    # What rounding leaves of domains that the vectors explain wholly says nothing.
    is_left = np.abs(residual).max() > 1e-6
    return Dependence(None, n, z_of_pairs(directions, residual, smooth) if is_left else None)


def whiten(x: NDArray[Any]) -> Doubles:
    """Return the leading principal components (n, k) of vectors (n, d), whitened, at length 1."""
    centred = x.astype(np.float64)
    centred -= centred.mean(axis=0)
    # The smaller of two matrices of the same eigenvalues.
    is_wide = len(x) < centred.shape[1]
    size, vectors = np.linalg.eigh(centred @ centred.T if is_wide else centred.T @ centred)
    most = min(MOST_DIRECTIONS, len(x) // TEXTS_A_DIRECTION)
    leading = np.flatnonzero(size > 1e-9 * max(size[-1], 1e-300))[-most:]
    vectors = vectors[:, leading]
    return normalize(vectors if is_wide else centred @ (vectors / np.sqrt(size[leading])))


def normalize(rows: Doubles) -> Doubles:
    """Return the rows (n, d), each divided by its Euclidean length."""
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300))


def orthonormal(columns: Doubles) -> Doubles:
    """Return an orthonormal basis (n, q') of the space of ``columns`` (n, q)."""
    left, size, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(left[:, size > 1e-9 * size[0]])


def clusters(directions: Doubles) -> Doubles:
    """Return which of a few clusters each direction is in, (n, clusters) of 0 and 1."""
    number = min(MOST_CLUSTERS, max(len(directions) // TEXTS_A_CLUSTER, 1))
    drawn = np.random.default_rng(0).choice(len(directions), number, replace=False)
    centres = directions[drawn]
    for _ in range(ROUNDS):
        inside = np.eye(number)[np.argmax(directions @ centres.T, axis=1)]
        centres = normalize(inside.T @ directions)
    return inside


def z_of_pairs(directions: Doubles, residual: Doubles, smooth: Doubles) -> float | None:
    """Return z of what is left of the domain, ``residual`` (n,), over all pairs of texts in
    ``directions`` (n, k), once the ``smooth`` basis (n, q) is taken out of their weights; None if
    nothing is left."""
    n, step = len(residual), max(1, CELLS // len(residual))
    blocks = np.split(np.arange(n), range(step, n, step))

    def weigh(block: NDArray[np.int64]) -> Doubles:
        near = np.clip(directions[block] @ directions.T, 0, CLOSEST)
        near[np.arange(len(block)), block] = 0
        return np.asarray(near * near * near)

    along = np.concatenate([weigh(block) @ smooth for block in blocks])
    apart, total, spread = along - smooth @ (smooth.T @ along), 0.0, 0.0
    for block in blocks:
        left = weigh(block) - smooth[block] @ apart.T - along[block] @ smooth.T
        left[np.arange(len(block)), block] = 0
        total += float(residual[block] @ left @ residual)
        spread += float(residual[block] ** 2 @ left**2 @ residual**2)
    return total / float(np.sqrt(2 * spread)) if spread > 0 else None
