"""Stratified splits: folds for cross-fitting, and a held-out part for early stopping.

Examples that share a group, of codes (n,), go together: whoever is scored or held out has none of
its own group in training. Without a shared group all draws are those of single examples.
"""

from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from mamushi.data.groups import GroupCodes, place_groups
from mamushi.errors import UserError
from mamushi.selection.arrays import Doubles, Mask, Rows

BLUR = 0.5
"""Share by which groups count as smaller where they are ordered, so that each seed has folds of its
own."""


def stratified_folds(
    forget: Mask, k: int, seed: int, groups: GroupCodes | None = None
) -> NDArray[np.int16]:
    """Draw the fold (n,) of every example; within a domain, sizes differ by at most 1, or
    by little more with ``groups`` (n,).

    Raises ``UserError`` unless both domains have an example, or group, for every fold, and two
    remain outside it: one to fit on, one for early stopping.
    """
    rng = np.random.default_rng(seed)
    if has_groups(groups):
        fold = draw_by_group(forget, groups, np.full(k, 1 / k), rng)
    else:
        fold = np.empty(len(forget), dtype=np.int64)
        for domain in (forget, ~forget):
            members = np.flatnonzero(domain)
            # Which folds are larger by one is drawn too, or fold 0 would be it in both domains.
            labels = np.arange(len(members)) % k
            fold[rng.permutation(members)] = rng.permutation(k)[labels]
    _check_parts(f"{k} folds", fold, k, 2, forget, groups)
    return fold.astype(np.int16)


def draw_held_out(
    forget: Mask, share: float, rng: np.random.Generator, groups: GroupCodes | None = None
) -> tuple[Rows, Rows]:
    """Draw positions of the rest, and of a stratified ``share``, at least one of a domain, or one
    of its ``groups`` (n,), in each. Raises ``UserError`` where there are too few for that."""
    side = np.zeros(len(forget), dtype=np.int64)
    if has_groups(groups):
        side = draw_by_group(forget, groups, np.array([1 - share, share]), rng)
        for domain in (forget, ~forget):
            names, counts = np.unique(groups[domain], return_counts=True)
            for lacking in {0, 1} - {*side[domain].tolist()}:
                side[np.isin(groups, names[counts.argsort()[:1]])] = lacking
        _check_parts("early stopping", side, 2, 1, forget, groups)
    else:
        for domain in (forget, ~forget):
            members = rng.permutation(np.flatnonzero(domain))
            count = min(max(1, round(share * len(members))), len(members) - 1)
            side[members[:count]] = 1
    return np.flatnonzero(side == 0), np.flatnonzero(side == 1)


def count_units(mask: Mask, groups: GroupCodes | None) -> int:
    """Return how many independent units a mask (n,) selects: groups, or examples without any."""
    return int(mask.sum() if groups is None else len(np.unique(groups[mask])))


def has_groups(groups: GroupCodes | None) -> TypeGuard[GroupCodes]:
    """Tell whether two examples are of one group."""
    return groups is not None and len(np.unique(groups)) < len(groups)


def draw_by_group(
    forget: Mask, groups: GroupCodes, portions: Doubles, rng: np.random.Generator
) -> GroupCodes:
    """Draw the part (n,) of every example, the same for all of a group.

    A domain's parts have about the ``portions`` (p,). Examples without a shared group fill up what
    groups leave open.
    """
    place = place_groups(forget[:, None].astype(np.int64), groups, portions, rng, BLUR)
    for domain in (forget, ~forget):
        alone = np.flatnonzero(domain & (place < 0))
        filled = np.bincount(place[domain & (place >= 0)], minlength=len(portions))
        due = np.maximum(domain.sum() * portions - filled, 0)
        due *= len(alone) / max(due.sum(), 1e-9)
        counts = np.floor(due + 1e-6).astype(np.int64)
        order = rng.permutation(len(portions))
        last = order[np.argsort(-np.round(due - counts, 6)[order], kind="stable")]
        counts[last[: len(alone) - counts.sum()]] += 1
        place[rng.permutation(alone)] = np.repeat(np.arange(len(portions)), counts)
    return place


def _check_parts(
    purpose: str, place: GroupCodes, k: int, outside: int, forget: Mask, groups: GroupCodes | None
) -> None:
    """Raise ``UserError`` unless every part has examples, or groups, of both domains, and so many
    are ``outside`` it."""
    for name, domain in (("forget", forget), ("retain", ~forget)):
        count = np.array([count_units(domain & (place == i), groups) for i in range(k)])
        if count.min() == 0 or count.sum() - count.max() < outside:
            problem = f"{count.sum()} {name} examples, or groups of them, are too few for {purpose}"
            raise UserError(problem, do="lower the selector's 'folds'")


def balanced_weights(forget: Mask) -> Doubles:
    """Return the weight n / (2 n_c) of every example of class c, so that both classes weigh n/2.

    With them the logit estimates log p1/p2 without the prior log-odds (paper, Section 4).
    """
    n, n1 = len(forget), int(forget.sum())
    return np.where(forget, n / (2 * n1), n / (2 * (n - n1)))
