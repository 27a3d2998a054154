"""Divergences by their definition, for samples of both domains."""

import numpy as np

from mamushi.evidence.frontier import phi, psi


def removal(l1: np.ndarray, kept: np.ndarray, pi1: float) -> float:
    """KL(p1 || p_-S) = E_p1[ log Z_b - log( pi1 kept + pi2 e^-l ) ], b = 1 - E_p1[kept]."""
    with np.errstate(divide="ignore"):
        mixture = np.logaddexp(np.log(pi1 * kept), np.log1p(-pi1) - l1)
    return float(np.log1p(-pi1 * (1.0 - np.mean(kept))) - np.mean(mixture))


def preservation(l2: np.ndarray, kept: np.ndarray, pi1: float, b: float) -> float:
    """KL(p2 || p_-S) = E_p2[ log Z_b - log( pi1 e^l kept + pi2 ) ]; ``kept`` (n2,)."""
    with np.errstate(divide="ignore"):
        mixture = np.logaddexp(np.log(pi1 * kept) + l2, np.log1p(-pi1))
    return float(np.log1p(-pi1 * b) - np.mean(mixture))


def preservation_by_importance(
    l1: np.ndarray, l2: np.ndarray, kept: np.ndarray, pi1: float
) -> float:
    """KL(p2 || p_-S) where only forget examples (n1,) are known to be in S or not.

    log Z_b - E_p2[ log( pi1 e^l + pi2 ) ] + E_p2[ phi(l) ] E_p1[ 1_S psi(l) ] / E_p1[ psi(l) ].
    """
    removed = 1.0 - kept
    whole = preservation(l2, np.ones_like(l2), pi1, float(removed.mean()))
    loss = psi(l1, pi1)
    share = np.average(removed, weights=loss if loss.any() else None)
    return whole + float(phi(l2, pi1).mean() * share)
