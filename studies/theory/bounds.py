"""Divergences by quadrature, and the paper's bound on what an estimated region loses.

A ``ratio`` (n,) is the log-density ratio l*(x) = log p1(x)/p2(x), ``pi1`` the share of the forget
domain in the mixture, pi2 = 1 - pi1, ``b`` = p1(S) the deleted p1-mass. All is in nats.
"""

import math

import numpy as np

from mamushi.evidence.frontier import Array


def expectation(values: Array, weights: Array) -> float:
    """Return the weighted mean of ``values`` (n,); without weight one may be infinite."""
    seen = weights > 0
    return float(np.average(values[seen], weights=weights[seen]))


def _log(x: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(x)


def removal(l1: Array, kept: Array, pi1: float, weights: Array) -> float:
    """Return KL(p1 || p_-S) = E_p1[ log Z_b - log( pi1 kept + pi2 e^-l ) ], b = 1 - E_p1[kept]."""
    b = 1.0 - expectation(kept, weights)
    mixture = np.logaddexp(_log(pi1 * kept), np.log1p(-pi1) - l1)
    return float(np.log1p(-pi1 * b)) - expectation(mixture, weights)


def preservation(l2: Array, kept: Array, pi1: float, b: float, weights: Array) -> float:
    """Return KL(p2 || p_-S) = E_p2[ log Z_b - log( pi1 e^l kept + pi2 ) ]; ``kept`` (n2,)."""
    mixture = np.logaddexp(_log(pi1 * kept) + l2, np.log1p(-pi1))
    return float(np.log1p(-pi1 * b)) - expectation(mixture, weights)


def mass_bound(a: float, m: float, delta: float, r: float = 0.0) -> float:
    """Bound p1(E) <= a/delta + 2 M (delta + r) for the symmetric difference E of S* = {l* >= tau*}
    and Shat = {lhat >= tauhat} of the same p1-mass (proof of Theorem "transfer", step 2).

    ``a`` = ||lhat - l*||_L1(p1), ``r`` >= |tauhat - tau*|, and ``m`` is M, which bounds the density
    of l* under p1 on [tau* - delta0, tau* + delta0]; 0 < delta <= delta0 - r.
    """
    return a / delta + 2.0 * m * (delta + r)


def best_delta(a: float, m: float, delta0: float, r: float = 0.0) -> float:
    """Return the delta in (0, delta0 - r] of the least ``mass_bound``: sqrt(a / (2 M)), or the
    right end.

    The paper has it for r = 0 and a <= 2 M delta0^2. For ``a`` = 0 it is 0, which no delta attains.
    Where ``r`` is not below ``delta0`` the theorem is silent.
    """
    assert a >= 0 and m >= 0 and 0 <= r < delta0
    if a == 0:
        return 0.0
    return min(math.sqrt(a / (2.0 * m)), delta0 - r) if m > 0 else delta0 - r


def least_mass_bound(a: float, m: float, delta0: float, r: float = 0.0) -> float:
    """Return the infimum of ``mass_bound`` over delta: for r = 0, 2 sqrt(2 M a) if
    a <= 2 M delta0^2, else a/delta0 + 2 M delta0."""
    delta = best_delta(a, m, delta0, r)
    return mass_bound(a, m, delta, r) if delta > 0 else 2.0 * m * r
