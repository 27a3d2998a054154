"""The divergences of a removal, and the paper's bounds on what an estimated region loses.

A ``ratio`` (n,) is the log-density ratio l*(x) = log p1(x)/p2(x), ``pi1`` the share of the forget
domain in the mixture, pi2 = 1 - pi1, ``b`` = p1(S) the deleted p1-mass and ``bound`` B >= |l*|. All
is in nats.

Three of the paper's corollaries need a correction, and are no functions here:

* "simplified" lacks the factor pi1/pi2 in its second bound, which holds as printed for pi1 <= 1/2.
* "end to end" sets phi_B = log(1 + e^B), hence pi1 = pi2, in a section that assumes pi1/pi2 < 1.
* "saturation" says that for a fixed error a both regrets vanish as O(sqrt(M)). Its limit leaves the
  condition a <= 2 M delta0^2. What holds for M = 0 is ``transfer`` of a/delta0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mamushi.evidence.frontier import Array, phi


def expectation(values: Array, weights: Array | None = None) -> float:
    """Return the mean of ``values`` (n,), or their weighted mean; without weight one may be inf."""
    if weights is None:
        return float(np.mean(values))
    seen = weights > 0
    return float(np.average(values[seen], weights=weights[seen]))


def log_z(pi1: float, b: float) -> float:
    """Return log Z_b = log(1 - pi1 b)."""
    return float(np.log1p(-pi1 * b))


def _log(x: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(x)


def removal(l1: Array, kept: Array, pi1: float, weights: Array | None = None) -> float:
    """Return KL(p1 || p_-S) = E_p1[ log Z_b - log( pi1 kept + pi2 e^-l ) ], b = 1 - E_p1[kept]."""
    b = 1.0 - expectation(kept, weights)
    mixture = np.logaddexp(_log(pi1 * kept), np.log1p(-pi1) - l1)
    return log_z(pi1, b) - expectation(mixture, weights)


def preservation(
    l2: Array, kept: Array, pi1: float, b: float, weights: Array | None = None
) -> float:
    """Return KL(p2 || p_-S) = E_p2[ log Z_b - log( pi1 e^l kept + pi2 ) ]; ``kept`` (n2,)."""
    mixture = np.logaddexp(_log(pi1 * kept) + l2, np.log1p(-pi1))
    return log_z(pi1, b) - expectation(mixture, weights)


@dataclass(frozen=True)
class Regrets:
    """One number of KL(p1 || .), ``removal``, and one of KL(p2 || .), ``preservation``."""

    removal: float
    preservation: float


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


def transfer(mass: float, bound: float, pi1: float) -> Regrets:
    """Bound the regrets by Theorem "transfer", for any pi1 in (0, 1):

        alpha* - alphahat <= Delta_rem  = phi_B mass,       phi_B = log(1 + pi1/pi2 e^B)
        epshat - eps*     <= Delta_pres = pi1/pi2 mass      (psi < pi1/pi2)

    ``mass`` bounds p1(E): ``mass_bound`` at some delta, its least value, or p1(E) itself.
    """
    highest = float(phi(np.asarray(bound, dtype=np.float64), pi1))
    return Regrets(highest * mass, pi1 / (1.0 - pi1) * mass)


def bce_regret(l2: Array, estimated2: Array, weights2: Array | None = None) -> float:
    """Return the excess BCE risk at equal priors of the logits lhat (Proposition "BCE regret"):

        R(lhat) - R* = 1/2 E_p2[ B_f(r, rhat) ],    r = e^l*, rhat = e^lhat,

    with the Bregman divergence B_f(z, zhat) = z log(z/zhat) - (1+z) log( (1+z)/(1+zhat) ). ``l2``
    and ``estimated2`` (n2,) are l* and lhat on the retain domain alone.
    """
    z, estimated = np.exp(l2), np.exp(estimated2)
    divergence = z * np.log(z / estimated) - (1.0 + z) * (np.log1p(z) - np.log1p(estimated))
    return 0.5 * expectation(divergence, weights2)


def score_error_constant(bound: float) -> float:
    """Return C_B = 2 e^(3B/2) m_B^(-1/2), m_B = 1/(e^B (e^B + 1)), of Lemma "BCE regret to L1":

        ||lhat - l*||_L1(p1) <= C_B sqrt(R(lhat) - R*)

    for |l*|, |lhat| <= B and the risk at equal priors. It grows as e^(5B/2).
    """
    return 2.0 * math.exp(1.5 * bound) * math.sqrt(math.exp(bound) * (math.exp(bound) + 1.0))
