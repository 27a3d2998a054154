"""The removal-preservation frontier from scores, before any training.

Paper, Section 5. Removing from the forget domain p1 what lies in a region S with p1(S) = b leaves

    p_-S(x) = ( pi1 p1(x) 1{x not in S} + pi2 p2(x) ) / Z_b,    Z_b = 1 - pi1 b,    pi2 = 1 - pi1.

Removal is KL(p1 || p_-S): the more, the better forgotten. Preservation is KL(p2 || p_-S): the less,
the better kept. Both are plug-in means over samples of the domains, in nats, where ``l1`` (n1,) and
``l2`` (n2,) are the log-density ratios log p1(x)/p2(x) of the forget and the retain sample.

``kept`` is 1{x not in S} for every sample, or any share between 0 and 1: a removal by chance, as of
the selector ``random``, keeps the share 1 - b everywhere and has no region. A ratio on a wrong
scale (over-confident logits) biases both divergences.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]


def log_z(pi1: float, b: float) -> float:
    """log Z_b = log(1 - pi1 b)."""
    return float(np.log1p(-pi1 * b))


def phi(u: Array, pi1: float) -> Array:
    """phi(u) = log(1 + pi1/pi2 e^u) (Lemma "decomposition")."""
    value: Array = np.logaddexp(0.0, u + _log_odds(pi1))
    return value


def removal(l1: Array, kept: Array, pi1: float) -> float:
    """KL(p1 || p_-S) = E_p1[ log Z_b - log( pi1 kept + pi2 e^-l ) ], with b = 1 - E_p1[kept]."""
    b = 1.0 - float(np.mean(kept))
    left = np.logaddexp(_log(pi1 * kept), np.log1p(-pi1) - l1)
    return float(log_z(pi1, b) - left.mean())


def preservation(l2: Array, kept: Array, pi1: float, b: float) -> float:
    """KL(p2 || p_-S) = E_p2[ log Z_b - log( pi1 e^l kept + pi2 ) ]; ``kept`` (n2,)."""
    left = np.logaddexp(_log(pi1 * kept) + l2, np.log1p(-pi1))
    return float(log_z(pi1, b) - left.mean())


def preservation_by_importance(l1: Array, l2: Array, kept: Array, pi1: float) -> float:
    """KL(p2 || p_-S) for a selector that says of forget examples alone whether they are in S.

    Lemma "decomposition" with p2 = p1 e^-l, and ``kept`` (n1,):

        KL(p2 || p_-S) = log Z_b - E_p2[ log( pi1 e^l + pi2 ) ] + E_p1[ 1_S e^-l phi(l) ].
    """
    removed = 1.0 - kept
    whole = preservation(l2, np.ones_like(l2), pi1, float(removed.mean()))
    return whole + float(np.mean(removed * _psi(l1, pi1)))


def _psi(u: Array, pi1: float) -> Array:
    """e^-u phi(u). As u falls, phi(u) underflows and is pi1/pi2 e^u: this tends to pi1/pi2."""
    shifted = u + _log_odds(pi1)
    small = shifted < -30
    log_phi = np.where(small, shifted, _log(phi(np.where(small, 0.0, u), pi1)))
    psi: Array = np.exp(log_phi - u)
    return psi


def _log_odds(pi1: float) -> float:
    return float(np.log(pi1) - np.log1p(-pi1))


def _log(x: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(x)
