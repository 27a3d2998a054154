"""The transfer theorem as functions on numbers: what an estimated region loses to the optimal one.

A ``ratio`` (n,) is the log-density ratio l*(x) = log p1(x)/p2(x), ``pi1`` the share of the forget
domain in the mixture, pi2 = 1 - pi1, ``b`` = p1(S) the deleted p1-mass and ``bound`` B >= |l*|. All
is in nats. The divergences themselves are in ``frontier``.

Three of the paper's corollaries need a correction, and are no functions here:

* "simplified" lacks the factor pi1/pi2 in its second bound, which holds as printed for pi1 <= 1/2.
* "end to end" sets phi_B = log(1 + e^B), hence pi1 = pi2, in a section that assumes pi1/pi2 < 1.
  Equal priors are those of training; phi_B and pi1/pi2 are those of the mixture.
* "saturation" says that for a fixed error a both regrets vanish as O(sqrt(M)). Its limit leaves the
  condition a <= 2 M delta0^2. What holds for M = 0 is ``transfer`` of a/delta0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mamushi.evidence.frontier import Array, expectation, phi, psi


@dataclass(frozen=True)
class Pair:
    """One number of KL(p1 || .), ``removal``, and one of KL(p2 || .), ``preservation``."""

    removal: float
    preservation: float


def mass_bound(a: float, m: float, delta: float, r: float = 0.0) -> float:
    """Bound p1(E) <= a/delta + 2 M (delta + r) for the symmetric difference E of S* = {l* >= tau*}
    and Shat = {lhat >= tauhat} of the same p1-mass (proof of Theorem "transfer", step 2).

    ``a`` = ||lhat - l*||_L1(p1), ``r`` >= |tauhat - tau*|, and ``m`` is M, which bounds the density
    of l* under p1 on [tau* - delta0, tau* + delta0]; 0 < delta <= delta0 - r. Raises ``ValueError``
    when ``delta`` is not above 0.
    """
    if not delta > 0:
        raise ValueError(f"delta is {delta}")
    return a / delta + 2.0 * m * (delta + r)


def best_delta(a: float, m: float, delta0: float, r: float = 0.0) -> float:
    """Return the delta in (0, delta0 - r] of the least ``mass_bound``: sqrt(a / (2 M)), or the
    right end.

    The paper has it for r = 0 and a <= 2 M delta0^2. For ``a`` = 0 it is 0, which no delta attains.
    Raises ``ValueError`` when ``a`` or ``m`` is negative or NaN, or when ``r`` is not below
    ``delta0``: the theorem is silent then.
    """
    if not (a >= 0 and m >= 0):
        raise ValueError(f"an error of {a} and a density of {m}")
    if not 0 <= r < delta0:
        raise ValueError(f"a threshold error of {r} is not below delta0 = {delta0}")
    if a == 0:
        return 0.0
    return min(math.sqrt(a / (2.0 * m)), delta0 - r) if m > 0 else delta0 - r


def least_mass_bound(a: float, m: float, delta0: float, r: float = 0.0) -> float:
    """Return the infimum of ``mass_bound`` over delta: for r = 0, 2 sqrt(2 M a) if
    a <= 2 M delta0^2, else a/delta0 + 2 M delta0. Raises ``ValueError`` as ``best_delta``."""
    delta = best_delta(a, m, delta0, r)
    return mass_bound(a, m, delta, r) if delta > 0 else 2.0 * m * r


def transfer(mass: float, bound: float, pi1: float) -> Pair:
    """Bound the regrets by Theorem "transfer", for any pi1 in (0, 1):

        alpha* - alphahat <= Delta_rem  = phi_B mass,       phi_B = log(1 + pi1/pi2 e^B)
        epshat - eps*     <= Delta_pres = pi1/pi2 mass      (psi < pi1/pi2)

    ``mass`` bounds p1(E): ``mass_bound`` at some delta, its least value, or p1(E) itself.
    """
    highest = float(phi(np.asarray(bound, dtype=np.float64), pi1))
    return Pair(highest * mass, pi1 / (1.0 - pi1) * mass)


def sharper_transfer(mass: float, bound: float, pi1: float, b: float) -> Pair:
    """Bound the regrets with a smaller constant, which the theorem's own proof gives. Not in the
    paper.

    S* \\ Shat and Shat \\ S* have equal p1-mass, p1(E)/2, since both regions have the mass b; so
    p1(E) <= 2 min(b, 1 - b), and the regrets, differences of two integrals over them, are at most

        ( phi(B) - phi(-B) ) h   and   ( psi(-B) - psi(B) ) h,     h = min(mass/2, b, 1 - b).
    """
    half = min(mass / 2.0, b, 1.0 - b)
    ends = np.array([-bound, bound])
    low, high = phi(ends, pi1)
    flat, steep = psi(ends, pi1)
    return Pair(float(high - low) * half, float(flat - steep) * half)


def bce_regret(l2: Array, estimated2: Array, weights2: Array | None = None) -> float:
    """Return the excess BCE risk at equal priors of the logits lhat (Proposition "BCE regret"):

        R(lhat) - R* = 1/2 E_p2[ B_f(r, rhat) ],    r = e^l*, rhat = e^lhat,

    with the Bregman divergence B_f(z, zhat) = z log(z/zhat) - (1+z) log( (1+z)/(1+zhat) ). ``l2``
    and ``estimated2`` (n2,) are l* and lhat on the retain domain alone.
    """
    z, other = np.exp(l2), np.exp(estimated2)
    divergence = z * np.log(z / other) - (1.0 + z) * (np.log1p(z) - np.log1p(other))
    return 0.5 * expectation(divergence, weights2)


def score_error_constant(bound: float) -> float:
    """Return C_B = 2 e^(3B/2) m_B^(-1/2), m_B = 1/(e^B (e^B + 1)), of Lemma "BCE regret to L1":

        ||lhat - l*||_L1(p1) <= C_B sqrt(R(lhat) - R*)

    for |l*|, |lhat| <= B and the risk at equal priors. It grows as e^(5B/2).
    """
    return 2.0 * math.exp(1.5 * bound) * math.sqrt(math.exp(bound) * (math.exp(bound) + 1.0))


def sharper_score_error_constant(bound: float) -> float:
    """Return C_B = 2 sqrt(1 + e^B), which serves the lemma as well. Not in the paper.

    The regret at x is a Bregman divergence of log(1 + e^u) in the logit u, whose second derivative
    is at least e^B/(1 + e^B)^2 on [-B, B]; and p1 <= 2/(1 + e^-B) (p1 + p2)/2. Neither step passes
    through the ratio.
    """
    return 2.0 * math.sqrt(1.0 + math.exp(bound))
