"""Stratified splits: folds for cross-fitting, and a held-out part for early stopping.

Examples that share a group, of codes (n,), go together: whoever is scored or held out has none of
its own group in training. Without a shared group all draws are those of single examples.
"""

from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from mamushi.errors import UserError

Codes = NDArray[np.int64]


def stratified_folds(
    forget: NDArray[np.bool_], k: int, seed: int, groups: Codes | None = None
) -> NDArray[np.int16]:
    """Draw the fold (n,) of every example; within a domain, sizes differ by at most 1, with
    ``groups`` (n,) by as little as these allow.

    Raises ``UserError`` unless both domains have an example, or group, for every fold, and two
    remain outside it: one to fit on, one for early stopping.
    """
    rng = np.random.default_rng(seed)
    if shared(groups):
        part = by_group(forget, groups, np.full(k, 1 / k), rng).astype(np.int16)
        _check_folds(forget, k, groups, part)
        return part
    fold = np.empty(len(forget), dtype=np.int16)
    for name, domain in (("forget", forget), ("retain", ~forget)):
        members = np.flatnonzero(domain)
        needed = 4 if k == 2 else k
        if len(members) < needed:
            raise UserError(
                f"{k} folds need at least {needed} {name} examples, there are {len(members)}",
                do="lower the selector's setting 'folds' or give it more examples",
            )
        # Which folds are larger by one is drawn too, or fold 0 would be it in both domains.
        labels = np.arange(len(members)) % k
        fold[rng.permutation(members)] = rng.permutation(k)[labels]
    return fold


def held_out(
    forget: NDArray[np.bool_],
    share: float,
    rng: np.random.Generator,
    groups: Codes | None = None,
) -> tuple[Codes, Codes]:
    """Draw positions of the rest, and of a stratified ``share``, at least one of a domain, or one
    of its ``groups`` (n,), in each. Raises ``UserError`` where the groups are too few for that."""
    if shared(groups):
        part = by_group(forget, groups, np.array([1 - share, share]), rng)
        for name, domain in (("forget", forget), ("retain", ~forget)):
            _both_sides(part, domain, groups, name)
        return np.flatnonzero(part == 0), np.flatnonzero(part == 1)
    rest, held = [], []
    for domain in (forget, ~forget):
        members = rng.permutation(np.flatnonzero(domain))
        count = min(max(1, round(share * len(members))), len(members) - 1)
        held.append(members[:count])
        rest.append(members[count:])
    return np.sort(np.concatenate(rest)), np.sort(np.concatenate(held))


def shared(groups: Codes | None) -> TypeGuard[Codes]:
    """Tell whether two examples are of one group."""
    return groups is not None and len(np.unique(groups)) < len(groups)


def by_group(
    forget: NDArray[np.bool_],
    groups: Codes,
    portions: NDArray[np.float64],
    rng: np.random.Generator,
) -> Codes:
    """Draw the part (n,) of every example, a group's the same, so that each part has its portion
    (p,) of both domains as nearly as groups allow: the largest first, each to where most is due.
    """
    _, unit = np.unique(groups, return_inverse=True)
    sizes = np.stack(
        [np.bincount(unit[own], minlength=unit.max() + 1) for own in (forget, ~forget)]
    )
    part = np.empty(sizes.shape[1], dtype=np.int64)
    filled = np.zeros((2, len(portions)))
    both = rng.permutation(np.flatnonzero(sizes.min(axis=0)))
    weight = 1 / np.maximum(sizes.sum(axis=1), 1.0) ** 2
    for one in both[np.argsort(-sizes[:, both].sum(axis=0), kind="stable")]:
        n = sizes[:, one]
        # Of the parts' sum of filled^2 / portion, which is least where all have their portions.
        more = (n * weight) @ (n[:, None] + 2 * filled) / portions
        order = rng.permutation(len(portions))
        part[one] = order[np.argmin(np.round(more / more.max(), 9)[order])]
        filled[:, part[one]] += n
    for own, other, there in zip(sizes, sizes[::-1], filled, strict=True):
        pure = np.flatnonzero((own > 0) & (other == 0))
        for size in np.unique(own[pure])[::-1]:
            alike = rng.permutation(pure[own[pure] == size])
            counts = _level(there, portions, int(size), len(alike), rng)
            part[alike] = np.repeat(np.arange(len(portions)), counts)
            there += size * counts
    return part[unit]


def _level(
    filled: NDArray[np.float64],
    portions: NDArray[np.float64],
    size: int,
    count: int,
    rng: np.random.Generator,
) -> Codes:
    """Return how many of ``count`` groups of one ``size`` go to each part (p,), by largest
    remainder of what brings the least full ones to one level of ``filled`` / ``portions``."""
    level = filled / portions
    under = np.argsort(level)
    while (to := (size * count + filled[under].sum()) / portions[under].sum()) < level[under[-1]]:
        under = under[:-1]
    quota = np.maximum(portions * to - filled, 0) / size
    counts = np.floor(quota + 1e-6).astype(np.int64)
    order = rng.permutation(len(portions))
    last = order[np.argsort(-np.round(quota - counts, 6)[order], kind="stable")]
    counts[last[: count - counts.sum()]] += 1
    return counts


def _check_folds(forget: NDArray[np.bool_], k: int, groups: Codes, fold: NDArray[np.int16]) -> None:
    for name, domain in (("forget", forget), ("retain", ~forget)):
        of_fold = np.array([len(np.unique(groups[domain & (fold == i)])) for i in range(k)])
        if of_fold.min() == 0 or of_fold.sum() - of_fold.max() < 2:
            raise _too_few(f"{k} folds", name, groups[domain])


def _both_sides(part: Codes, domain: NDArray[np.bool_], groups: Codes, name: str) -> None:
    """Move the smallest group of a domain to that of two parts which has none."""
    for side in (0, 1):
        if not (domain & (part == side)).any():
            names, counts = np.unique(groups[domain], return_counts=True)
            if len(names) < 2:
                raise _too_few("early stopping", name, groups[domain])
            part[groups == names[counts.argmin()]] = side


def _too_few(what: str, name: str, groups: Codes) -> UserError:
    _, counts = np.unique(groups, return_counts=True)
    found = f"{len(groups)} {name} examples are of {len(counts)} groups, the largest of "
    do = "lower the selector's setting 'folds', or set the dataset's 'group' to a finer column "
    return UserError(f"{what}: {found}{counts.max(initial=0)}; too few", do=f"{do}or null")


def balanced_weights(forget: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the weight n / (2 n_c) of every example of class c, so that both classes weigh n/2.

    With them the logit estimates log p1/p2 without the prior log-odds (paper, Section 4).
    """
    n, n1 = len(forget), int(forget.sum())
    return np.where(forget, n / (2 * n1), n / (2 * (n - n1)))
