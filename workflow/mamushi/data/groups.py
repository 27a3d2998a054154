"""Groups of texts that are not independent, such as threads or authors, of which each goes whole to
one part: to a section, a fold, a half, or what training stops by."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

GroupCodes = NDArray[np.int64]


def effective_share(groups: GroupCodes | None) -> float:
    """Return what share of texts says as much as all, were those of a group alike (Kish 1965)."""
    if groups is None:
        return 1.0
    sizes = np.unique(groups, return_counts=True)[1]
    return float(len(groups) / max((sizes**2).sum(), 1))


def place_groups(
    kinds: NDArray[np.integer[Any]],
    groups: GroupCodes,
    portions: NDArray[np.float64],
    rng: np.random.Generator,
    blur: float = 0.0,
) -> GroupCodes:
    """Return the part (n,) of each row that shares its group (n,) with another one, else -1, so
    that each part has its portion (p,) of every kind of row (n, m), from 0, as nearly as it may be.

    The largest groups go first; sizes count as less by up to the share ``blur``. Of what parts are
    owed of a kind, o, and n rows of it in a group, the part with the least sum of n (n - 2 o) /
    portion leaves the least sum of o^2 / portion.
    """
    _, unit, size = np.unique(groups, return_inverse=True, return_counts=True)
    several = rng.permutation(np.flatnonzero(size > 1))
    weight = size[several] * (1 - blur * rng.random(len(several)))
    counts = np.zeros((len(size), int(kinds.max(initial=0)) + 1, 1))
    np.add.at(counts, (unit[:, None], kinds), 1)
    owed = np.zeros((counts.shape[1], len(portions)))
    place = np.full(len(size), -1)
    for group in several[np.argsort(-weight, kind="stable")].tolist():
        n = counts[group]
        cost = (n * (n - 2 * owed)).sum(axis=0) / portions
        place[group] = np.argmin(np.round(cost, 9))
        owed += n * (portions - (np.arange(len(portions)) == place[group]))
    return np.asarray(place[unit], dtype=np.int64)
