"""Stratified splits: folds for cross-fitting, and a held-out part for early stopping."""

import numpy as np
from numpy.typing import NDArray

from mamushi.errors import UserError


def stratified_folds(forget: NDArray[np.bool_], k: int, seed: int) -> NDArray[np.int16]:
    """Draw the fold (n,) of every example; within a domain, sizes differ by at most 1.

    Raises ``UserError`` unless both domains have an example for every fold, and two remain outside
    it: one to fit on, one for early stopping.
    """
    rng = np.random.default_rng(seed)
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
    forget: NDArray[np.bool_], share: float, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw positions of the rest, and of a stratified ``share``, at least one of a domain."""
    rest, held = [], []
    for domain in (forget, ~forget):
        members = rng.permutation(np.flatnonzero(domain))
        count = min(max(1, round(share * len(members))), len(members) - 1)
        held.append(members[:count])
        rest.append(members[count:])
    return np.sort(np.concatenate(rest)), np.sort(np.concatenate(held))


def balanced_weights(forget: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the weight n / (2 n_c) of every example of class c, so that both classes weigh n/2.

    With them the logit estimates log p1/p2 without the prior log-odds (paper, Section 4).
    """
    n, n1 = len(forget), int(forget.sum())
    return np.where(forget, n / (2 * n1), n / (2 * (n - n1)))
