"""The paper's theory as functions on arrays: the lemma, the optimal region, the transfer bounds.

Everything here is in nats. A ``ratio`` (n,) is the log-density ratio l*(x) = log p1(x)/p2(x) at n
points x (``l1``, ``l2``: points of p1, of p2), ``pi1`` the share of the forget domain in the
mixture, pi2 = 1 - pi1, and ``b`` = p1(S) the deleted p1-mass. An expectation E_p1 or E_p2 is a mean
over a sample of that domain, or with ``weights`` (n,) a weighted mean: the nodes of a quadrature
times the density. The parts that the frontier needs too (``phi``, ``psi``, ``log_z``, ``removal``,
``preservation``) are in ``selection/frontier.py``.

Where the paper's statement needs a correction, the docstring says so under "Correction", and the
function computes what holds. ``ValueError`` means that an argument is outside a statement's domain.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mamushi.evidence.frontier import Array, expectation, log_odds, log_z, phi, psi

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Pair:
    """One number of KL(p1 || .), ``removal``, and one of KL(p2 || .), ``preservation``."""

    removal: float
    preservation: float


def log_edited(log_p1: Array, log_p2: Array, deleted: Mask, pi1: float, b: float) -> Array:
    """log p_-S(x) of the edited mixture at points (n,), ``deleted`` (n,) being 1{x in S}:

        p_-S(x) = ( pi1 p1(x) 1{x not in S} + pi2 p2(x) ) / Z_b,    Z_b = 1 - pi1 b.

    Only the normalizer knows ``b``: it must be p1(S) for the density to integrate to 1.
    """
    forget = np.where(deleted, -np.inf, math.log(pi1) + log_p1)
    mixed: Array = np.logaddexp(forget, math.log1p(-pi1) + log_p2) - log_z(pi1, b)
    return mixed


def constants(
    l1: Array,
    l2: Array,
    pi1: float,
    b: float,
    weights1: Array | None = None,
    weights2: Array | None = None,
) -> Pair:
    """The constants of Lemma "decomposition", which depend on b and not on which S has that mass:

        C_rem  = log Z_b - log pi1 - E_p1[ log(1 + pi2/pi1 e^-l) ] = KL(p1 || mixture) + log Z_b
        C_pres = log Z_b - log pi2 - E_p2[ phi(l) ]                = KL(p2 || mixture) + log Z_b

    with the unedited mixture pi1 p1 + pi2 p2. The paper prints the first and leaves the second
    open. Both are finite for any p1 and p2, so the lemma also holds where a divergence is infinite.
    """
    forget = expectation(np.logaddexp(math.log(pi1), math.log1p(-pi1) - l1), weights1)
    retain = expectation(phi(l2, pi1), weights2)
    return Pair(log_z(pi1, b) - forget, log_z(pi1, b) - math.log1p(-pi1) - retain)


def captured(ratio: Array, deleted: Mask, pi1: float, weights: Array | None = None) -> float:
    """int_S p(x) phi(l*(x)) dx, where ``ratio`` and ``weights`` belong to p: p1 or p2.

    Lemma "decomposition": KL(p1 || p_-S) = C_rem + the one of p1, and KL(p2 || p_-S) = C_pres + the
    one of p2. This is about sets. A deletion by chance that keeps a share k(x) strictly between 0
    and 1 gives divergences that are convex in k, hence at most what the lemma would give with
    1 - k(x) for the indicator.
    """
    return expectation(np.where(deleted, phi(ratio, pi1), 0.0), weights)


@dataclass(frozen=True)
class Threshold:
    """Delete where l > ``tau``; at l = ``tau`` delete the share ``ties`` of the p1-mass there."""

    tau: float
    ties: float

    def deleted(self, ratio: Array) -> NDArray[np.float64]:
        """The share deleted (n,) at the log-ratios ``ratio`` (n,): 0, ``ties`` or 1."""
        return np.where(ratio == self.tau, self.ties, (ratio > self.tau).astype(np.float64))


def threshold(l1: Array, b: float, weights: Array | None = None) -> Threshold:
    """The region {l* >= tau} of p1-mass ``b``, which Proposition "optimal selection" proves to
    maximize KL(p1 || p_-S) and to minimize KL(p2 || p_-S) among all sets of that mass.

    tau is the largest value with p1(l* >= tau) >= b, from a sample or from weighted nodes. Where
    the law of l* has an atom at tau, as any sample has, {l* >= tau} can hold more than b, and only
    the share ``ties`` of the atom is deleted. phi and psi are constant on the atom, so that *which*
    part of it goes is all the same: any subset of the right mass is optimal.

    The proof: phi is strictly increasing, and psi(u) = e^-u phi(u) strictly decreasing, so that to
    exchange mass of S for equal mass of lower l* lowers int_S p1 phi and raises int_S p1 psi, which
    is int_S p2 phi. The optimum is unique but for null sets and ties at tau.

    Scope: among sets. A rule by chance that keeps the share k(x) = min(1, c e^-l) preserves better
    than any set of its mass, because KL(p2 || .) is convex in k; for removal, convex too and to be
    maximized, the threshold set stays the best of all.

    Raises ``ValueError`` when ``b`` is not between 0 and 1 or ``l1`` is empty.
    """
    if not 0 <= b <= 1:
        raise ValueError(f"a p1-mass of {b}")
    if not len(l1):
        raise ValueError("no points")
    weights = np.ones(len(l1)) if weights is None else weights
    values, inverse = np.unique(l1, return_inverse=True)
    mass = np.bincount(inverse, weights=weights, minlength=len(values))[::-1]
    mass = mass / mass.sum()
    above = np.concatenate([[0.0], np.cumsum(mass)])
    at = min(int(np.searchsorted(above[1:], b)), len(values) - 1)
    ties = (b - above[at]) / mass[at] if mass[at] else 0.0
    return Threshold(float(values[::-1][at]), float(np.clip(ties, 0.0, 1.0)))


def bayes_logit(ratio: Array, pi1: float) -> Array:
    """logit D*(x) = l*(x) + log(pi1/pi2), D* = pi1 p1 / (pi1 p1 + pi2 p2) (Lemma "BCE").

    D* is the minimizer of ``bce_risk`` (n,), unique where the mixture has mass. ``pi1`` is the
    share of positive *weight* in training: with balanced class weights it is 1/2, and the logit is
    the log-density ratio whatever the mixture's own share.
    """
    value: Array = ratio + log_odds(pi1)
    return value


def bce_risk(
    logits1: Array,
    logits2: Array,
    pi1: float,
    weights1: Array | None = None,
    weights2: Array | None = None,
) -> float:
    """L(D) = -pi1 E_p1[log D] - pi2 E_p2[log(1 - D)], with D = sigmoid(logits)."""
    forget = expectation(np.logaddexp(0.0, -logits1), weights1)
    retain = expectation(np.logaddexp(0.0, logits2), weights2)
    return pi1 * forget + (1.0 - pi1) * retain


def mass_bound(a: float, m: float, delta: float, r: float = 0.0) -> float:
    """p1(E) <= a/delta + 2 M (delta + r) for the symmetric difference E of S* = {l* >= tau*} and
    Shat = {lhat >= tauhat} of the same p1-mass (proof of Theorem "transfer", step 2).

    ``a`` = ||lhat - l*||_L1(p1), ``r`` >= |tauhat - tau*|, and ``m`` is M, which bounds the density
    of l* under p1 on [tau* - delta0, tau* + delta0]; 0 < delta <= delta0 - r.

    The score lhat - (tauhat - tau*) selects the same set, so that r = 0 can always be had, at the
    price of another a. For lhat = l* + constant that form gives 0, and the other does not.

    Raises ``ValueError`` when ``delta`` is not above 0.
    """
    if not delta > 0:
        raise ValueError(f"delta is {delta}")
    return a / delta + 2.0 * m * (delta + r)


def best_delta(a: float, m: float, delta0: float, r: float = 0.0) -> float:
    """The delta in (0, delta0 - r] of the least ``mass_bound``: sqrt(a / (2 M)), or the right end.

    The paper has it for r = 0 and a <= 2 M delta0^2; otherwise the bound still falls where
    the interval ends. It is 0, an infimum that no delta attains, for ``a`` = 0.

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
    """The infimum of ``mass_bound`` over delta; increasing in ``a``, ``m`` and ``r``.

    For r = 0 it is 2 sqrt(2 M a) if a <= 2 M delta0^2, else a/delta0 + 2 M delta0.
    Raises ``ValueError`` as ``best_delta``.
    """
    delta = best_delta(a, m, delta0, r)
    return mass_bound(a, m, delta, r) if delta > 0 else 2.0 * m * r


def transfer(mass: float, bound: float, pi1: float) -> Pair:
    """Theorem "transfer": what the estimated region of the same p1-mass loses to the optimal one.

        alpha* - alphahat <= Delta_rem  = phi_B mass,       phi_B = log(1 + pi1/pi2 e^B)
        epshat - eps*     <= Delta_pres = pi1/pi2 mass      (psi < pi1/pi2)

    ``bound`` is B >= |l*|, and ``mass`` bounds p1(E): ``mass_bound`` at some delta, its least
    value, or p1(E) itself. Holds for any pi1 in (0, 1).
    """
    return Pair(_phi(bound, pi1) * mass, _odds(pi1) * mass)


def sharper_transfer(mass: float, bound: float, pi1: float, b: float) -> Pair:
    """The theorem with a smaller constant, which its own proof gives. Not in the paper.

    S* \\ Shat and Shat \\ S* have equal p1-mass, p1(E)/2, since both regions have the mass b; so
    p1(E) <= 2 min(b, 1 - b), and the regrets, differences of two integrals over them, are at most

        ( phi(B) - phi(-B) ) h   and   ( psi(-B) - psi(B) ) h,     h = min(mass/2, b, 1 - b).
    """
    half = min(mass / 2.0, b, 1.0 - b)
    ends = np.array([-bound, bound])
    low, high = phi(ends, pi1)
    flat, steep = psi(ends, pi1)
    return Pair(float(high - low) * half, float(flat - steep) * half)


def simplified(a: float, m: float, delta0: float, bound: float, pi1: float) -> Pair:
    """Corollary "simplified": with tauhat = tau* and a <= 2 M delta0^2, at delta = sqrt(a/(2M)),

        alpha* - alphahat <= phi_B 2 sqrt(2 M a),    epshat - eps* <= pi1/pi2 2 sqrt(2 M a).

    Correction: the paper's second bound lacks the factor pi1/pi2, for it assumes pi1/pi2 < 1 in
    that section; its proof writes an equality that is then "<=". Without the assumption the factor
    is needed, and it is kept here.

    Raises ``ValueError`` when a > 2 M delta0^2: that delta is then outside the interval of the
    margin condition. ``least_mass_bound`` covers this case.
    """
    if a > 2.0 * m * delta0**2:
        raise ValueError(f"a = {a} is above 2 M delta0^2 = {2.0 * m * delta0**2}")
    return transfer(2.0 * math.sqrt(2.0 * m * a), bound, pi1)


def saturation(a: float, delta0: float, bound: float, pi1: float) -> Pair:
    """The limit M -> 0 of the bounds, for a fixed error ``a``: phi_B a/delta0 and pi1/pi2 a/delta0.

    Correction of Corollary "saturation", which says that for a fixed a both regrets vanish as
    O(sqrt(M)). It takes the limit of ``simplified`` outside its condition a <= 2 M delta0^2, by
    which a must vanish with M: an interval that covers [-B, B] has M >= 1/(2B), so that delta0 < 2B
    for any smaller M. The statement is false: where l* has no mass within delta0 of tau*, M = 0,
    an error that carries the mass h of either side over the gap costs a >= 2 delta0 h, and has a
    regret in removal of at least h (phi(tau* + delta0) - phi(tau* - delta0)) > 0. What does hold is
    a bound linear in a, the smaller the wider the gap, instead of one in sqrt(a).

    Raises ``ValueError`` when ``delta0`` is not above 0.
    """
    return transfer(mass_bound(a, 0.0, delta0), bound, pi1)


def bregman(z: Array, other: Array) -> Array:
    """B_f(z, zhat) = f(z) - f(zhat) - f'(zhat)(z - zhat) for f(z) = z log z - (1+z) log(1+z):

    B_f(z, zhat) = z log(z/zhat) - (1+z) log( (1+z)/(1+zhat) )      for z, zhat > 0 (n,).
    """
    value: Array = z * np.log(z / other) - (1.0 + z) * (np.log1p(z) - np.log1p(other))
    return value


def bce_regret(
    l2: Array, estimated2: Array, weights2: Array | None = None, pi1: float = 0.5
) -> float:
    """Proposition "BCE regret", for the logits lhat + log(pi1/pi2) of any prior:

        R(lhat) - R* = pi2 E_p2[ B_f( pi1/pi2 r, pi1/pi2 rhat ) ],    r = e^l, rhat = e^lhat.

    At pi1 = 1/2 this is the paper's 1/2 E_p2[ B_f(r, rhat) ]. ``l2`` and ``estimated2`` (n2,) are
    l* and lhat on the retain domain alone.
    """
    odds = _odds(pi1)
    divergence = bregman(odds * np.exp(l2), odds * np.exp(estimated2))
    return (1.0 - pi1) * expectation(divergence, weights2)


def score_error_constant(bound: float) -> float:
    """C_B = 2 e^(3B/2) m_B^(-1/2), m_B = 1/(e^B (e^B + 1)), of Lemma "BCE regret to L1":

        ||lhat - l*||_L1(p1) <= C_B sqrt(R(lhat) - R*)

    for |l*|, |lhat| <= B and the risk at equal priors. Correct; it grows as e^(5B/2).
    """
    return 2.0 * math.exp(1.5 * bound) * math.sqrt(math.exp(bound) * (math.exp(bound) + 1.0))


def sharper_score_error_constant(bound: float) -> float:
    """C_B = 2 sqrt(1 + e^B) serves the lemma as well, and grows as e^(B/2) only. Not in the paper.

    The regret at x is a Bregman divergence of log(1 + e^u) in the logit u, whose second derivative
    is at least e^B/(1 + e^B)^2 on [-B, B]; and p1 <= 2/(1 + e^-B) (p1 + p2)/2. Neither step passes
    through the ratio.
    """
    return 2.0 * math.sqrt(1.0 + math.exp(bound))


def end_to_end(
    regret: float, m: float, delta0: float, bound: float, pi1: float, *, sharper: bool = False
) -> Pair:
    """Corollary "end to end": the transfer bound from the excess BCE risk at equal priors.

    With a <= C_B sqrt(regret), tauhat = tau* and |lhat| <= B it bounds p1(E) by

        2 sqrt(2M) C_B^(1/2) regret^(1/4)     where C_B sqrt(regret) <= 2 M delta0^2,

    and otherwise by ``least_mass_bound`` of C_B sqrt(regret), which holds without a condition; the
    paper's condition is on the unknown a. ``sharper`` takes the other constant.

    Correction: the paper sets phi_B = log(1 + e^B), hence pi1 = pi2, in a section that assumes
    pi1/pi2 < 1. Equal priors are those of *training* (balanced class weights); ``pi1`` is the
    mixture's, and phi_B and the factor pi1/pi2 are taken at it.
    """
    constant = sharper_score_error_constant if sharper else score_error_constant
    a = constant(bound) * math.sqrt(max(regret, 0.0))
    return transfer(least_mass_bound(a, m, delta0), bound, pi1)


def _phi(u: float, pi1: float) -> float:
    value: Any = phi(np.asarray(u, dtype=np.float64), pi1)
    return float(value)


def _odds(pi1: float) -> float:
    return pi1 / (1.0 - pi1)
