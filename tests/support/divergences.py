"""A divergence by its definition, for samples of both domains."""

import numpy as np

from mamushi.evidence.frontier import expectation, phi, preservation, psi


def preservation_by_importance(
    l1: np.ndarray, l2: np.ndarray, kept: np.ndarray, pi1: float
) -> float:
    """KL(p2 || p_-S) where only forget examples (n1,) are known to be in S or not.

    log Z_b - E_p2[ log( pi1 e^l + pi2 ) ] + E_p2[ phi(l) ] E_p1[ 1_S psi(l) ] / E_p1[ psi(l) ].
    """
    removed = 1.0 - kept
    whole = preservation(l2, np.ones_like(l2), pi1, float(removed.mean()))
    loss = psi(l1, pi1)
    return whole + float(phi(l2, pi1).mean()) * expectation(removed, loss if loss.any() else None)
