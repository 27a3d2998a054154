"""What the paper proves, measured on texts whose exact log-density ratio is known.

The texts are the whole population: p1 has the same mass at each of n forget texts, and p2 = p1 e^-l
with l the exact ratio, so that every divergence, risk and norm of the paper is a finite sum. Such a
population has no density of l, whose largest value M Assumption "local score density" bounds. All
that the proof asks of M is p1(|l - tau| <= t) <= 2 M t at t = delta + r_tau: M is the smallest
number for which that holds, and the bound the least over delta, the theorem's tightest form.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from mamushi.evidence.frontier import Array, log_odds, phi, read_truth
from mamushi.io import paths, schemas
from mamushi.io.columns import Table
from mamushi.io.tables import FORGET, examples_file, read_metadata, read_table
from mamushi.selection.arrays import Doubles, Mask
from mamushi.selection.removals import budget_size
from mamushi_extras.theory.schemas import THEORY

FEW = 12  # Texts of which all sets are tried.
ROUNDING_ERROR = 1e-9
"""Nats by which sums of a few thousand terms may differ from what they are equal to."""

_Row = dict[str, Any]


class Population:
    """Forget texts: l (n,) and its estimate lhat (n,), both shifted so that p2 sums to 1, and the
    share pi1 of the forget domain in what is trained on. Masses are ``p2`` (n,) and those of the
    forget domain 1/n. The ``bound`` B is the largest |l|: the estimate is clipped there, as Lemma
    "BCE regret to L1" asks. The ``error`` a is the mean |lhat - l| under p1."""

    def __init__(self, ratio: Doubles, estimate: Doubles, pi1: float) -> None:
        shift = math.log(np.exp(-ratio).mean())
        self.ratio, self.pi1 = ratio + shift, pi1
        self.bound = float(np.abs(self.ratio).max())
        self.estimate = np.clip(estimate + shift, -self.bound, self.bound)
        self.error = float(np.abs(self.estimate - self.ratio).mean())
        self.p2 = np.exp(-self.ratio) / len(ratio)

    def divergences(self, removed: Mask) -> Doubles:
        """Return KL(p1 || p_-S) and KL(p2 || p_-S) of sets S, ``removed`` (..., n), as (2, ...):
        by the definition, from the masses of the three distributions."""
        n, p2 = len(self.ratio), self.p2
        mixed = self.pi1 * ~removed / n + (1.0 - self.pi1) * p2
        mixed = mixed / mixed.sum(axis=-1, keepdims=True)
        to_p1 = (np.log(1 / n / mixed) / n).sum(axis=-1)
        to_p2 = (p2 * np.log(p2 / mixed)).sum(axis=-1)
        return np.stack([to_p1, to_p2])

    def top(self, score: Doubles, k: int) -> Mask:
        """Return the set (n,) of the ``k`` texts that score highest."""
        return np.argsort(np.argsort(-score, kind="stable")) < k


def tables(
    root: Path, cells: Iterable[Mapping[str, Any]], budgets: Sequence[float], selector: str
) -> dict[Table, list[_Row]]:
    """Return the table of cells whose exact ratio is known."""
    rows: list[_Row] = []
    for cell in cells:
        calibrated = paths.under(root, paths.CALIBRATED, **cell)
        estimate = read_table(calibrated, schemas.CALIBRATED, ["id", "domain", "log_ratio"])
        read = read_metadata(calibrated)["provenance"]["inputs"]["examples"]
        ratio = read_truth(examples_file(root, read, **cell), estimate["id"])
        if ratio is None:
            continue
        forget = np.array(estimate["domain"].to_pylist()) == FORGET
        log_ratio = np.asarray(estimate["log_ratio"].to_numpy(), dtype=np.float64)
        texts = Population(ratio[forget], log_ratio[forget], float(forget.mean()))
        rows += [{**cell, "selector": selector, **row} for row in theory_rows(texts, budgets)]
    return {THEORY: rows}


def theory_rows(population: Population, budgets: Iterable[float]) -> list[_Row]:
    """Return the rows of the table ``theory`` but for the cell."""
    rows = [*_all_sets(population), *_risk_rows(population)]
    for beta in budgets:
        if 0 < (k := budget_size(beta, len(population.ratio))) < len(population.ratio):
            rows += [{**row, "beta": float(beta)} for row in _transfer_rows(population, k)]
    return rows


def _bound_row(statement: str, measured: float, limit: float, **terms: float | None) -> _Row:
    # How loose a bound is means nothing where what it bounds is rounding.
    loose = limit / measured if measured > ROUNDING_ERROR < limit else None
    row = {"statement": statement, "measured": measured, "bound": limit, "loose": loose}
    return {**row, "holds": measured <= limit + ROUNDING_ERROR, **terms}


def draw_few(population: Population) -> Population:
    """Return ``FEW`` of the texts, at even ranks of l, as a population of their own."""
    order = np.argsort(population.ratio, kind="stable")
    places = order[np.unique(np.linspace(0, len(order) - 1, FEW).round().astype(np.int64))]
    return Population(population.ratio[places], population.estimate[places], population.pi1)


def _all_sets(population: Population) -> Iterator[_Row]:
    """Try all sets of a few texts: Lemma "decomposition" and Proposition "optimal selection"."""
    few = draw_few(population)
    n = len(few.ratio)
    sets = np.array([*product([False, True], repeat=n)])
    sizes, values = sets.sum(axis=1), few.divergences(sets)
    best = few.divergences(np.array([few.top(few.ratio, k) for k in range(n + 1)]))
    phi_values = phi(few.ratio, few.pi1)
    # What the sum over the set leaves depends on the budget alone.
    constant = values - np.stack([sets @ phi_values / n, sets @ (few.p2 * phi_values)])
    of_budget = np.stack([constant[:, sizes == k][:, 0] for k in range(n + 1)], axis=1)[:, sizes]
    yield _bound_row("decomposition", float(np.abs(constant - of_budget).max()), 0.0)
    removal = values[0] > best[0][sizes] + ROUNDING_ERROR
    preservation = values[1] < best[1][sizes] - ROUNDING_ERROR
    yield _bound_row("optimal_removal", float(removal.sum()), 0.0)
    yield _bound_row("optimal_preservation", float(preservation.sum()), 0.0)


def _excess_risk(population: Population) -> float:
    """Return the excess cross-entropy of lhat at equal priors, from the two risks."""

    def risk(logit: Doubles) -> float:
        to_p1 = np.logaddexp(0.0, -logit) / len(logit)
        return float((to_p1 + population.p2 * np.logaddexp(0.0, logit)).sum()) / 2

    return max(risk(population.estimate) - risk(population.ratio), 0.0)


def _error_by_risk(population: Population) -> float:
    return score_error_constant(population.bound) * math.sqrt(_excess_risk(population))


def _risk_rows(population: Population) -> Iterator[_Row]:
    """Measure the cross-entropy: Lemma "BCE, general priors", Proposition "BCE regret" and Lemma
    "BCE regret to L1"."""
    ratio, p2, error = population.ratio, population.p2, population.error
    first, second = population.pi1 / len(ratio), (1.0 - population.pi1) * p2
    probability = 1.0 / (1.0 + np.exp(-(ratio + log_odds(population.pi1))))
    gradient = probability * (first + second) - first
    yield _bound_row("bce_minimum", float(np.abs(gradient).max()), 0.0)
    difference = _excess_risk(population) - bce_regret(ratio, population.estimate, p2)
    yield _bound_row("bce_regret", abs(difference), 0.0)
    limit, bound = _error_by_risk(population), population.bound
    yield _bound_row("l1_from_bce", error, limit, error=error, largest_ratio=bound)


def _transfer_rows(population: Population, k: int) -> Iterator[_Row]:
    """Measure what the estimated region of ``k`` texts loses: Theorem "transfer", and with the
    error that the cross-entropy allows in place of a, Corollary "end to end"."""
    ratio, estimate, bound = population.ratio, population.estimate, population.bound
    best, chosen = population.top(ratio, k), population.top(estimate, k)
    tau = float(ratio[best].min())
    tau_error = abs(float(estimate[chosen].min()) - tau)
    (removed, harm), (removed_hat, harm_hat) = population.divergences(np.array([best, chosen])).T
    for name, error in (("transfer", population.error), ("bce", _error_by_risk(population))):
        mass, delta = window_bound(np.abs(ratio - tau), error, tau_error)
        terms = {"error": error, "tau_error": tau_error, "delta": delta, "largest_ratio": bound}
        if delta is not None:
            terms["margin"] = (mass - error / delta) / (2 * (delta + tau_error))
        of_removal, of_preservation = transfer(mass, bound, population.pi1)
        if name == "transfer":
            yield _bound_row("mass", float((best != chosen).mean()), mass, **terms)
        yield _bound_row(f"{name}_removal", float(removed - removed_hat), of_removal, **terms)
        yield _bound_row(f"{name}_preservation", float(harm_hat - harm), of_preservation, **terms)


def transfer(mass: float, bound: float, pi1: float) -> tuple[float, float]:
    """Bound what an estimated region loses of removal, phi_B ``mass`` with phi_B = log(1 + pi1/pi2
    e^B), and of preservation, pi1/pi2 ``mass`` (Theorem "transfer"); ``mass`` bounds p1 of what is
    in one of the regions alone."""
    return float(phi(np.asarray(bound), pi1)) * mass, pi1 / (1.0 - pi1) * mass


def bce_regret(l2: Array, estimated2: Array, weights2: Array) -> float:
    """Return the excess BCE risk at equal priors of the logits lhat (Proposition "BCE regret"), 1/2
    E_p2[B_f(e^l*, e^lhat)] with B_f(z, zhat) = z log(z/zhat) - (1+z) log((1+z)/(1+zhat)), from l*
    and lhat (n2,) on the retain domain alone, of masses ``weights2``."""
    z, estimated = np.exp(l2), np.exp(estimated2)
    divergence = z * np.log(z / estimated) - (1.0 + z) * (np.log1p(z) - np.log1p(estimated))
    seen = weights2 > 0
    return 0.5 * float(np.average(divergence[seen], weights=weights2[seen]))


def score_error_constant(bound: float) -> float:
    """Return C_B = 2 e^(3B/2) m_B^(-1/2), m_B = 1/(e^B (e^B + 1)), of Lemma "BCE regret to L1":
    ||lhat - l*||_L1(p1) <= C_B sqrt(R(lhat) - R*) for |l*|, |lhat| <= B. It grows as e^(5B/2)."""
    return 2.0 * math.exp(1.5 * bound) * math.sqrt(math.exp(bound) * (math.exp(bound) + 1.0))


def window_bound(distances: Doubles, error: float, tau_error: float) -> tuple[float, float | None]:
    """Return the least a/delta + p1(|l - tau| < delta + r_tau) over delta > 0, and that delta, None
    where none is better than 1; from |l - tau| (n,), the ``error`` a and ``tau_error`` r_tau.
    Between two distances the first term alone falls, so the least is at one of them."""
    order = np.sort(distances)
    inside = np.searchsorted(order, order, side="left") / len(order)
    deltas = order - tau_error
    usable = deltas > 0
    bounds = error / deltas[usable] + inside[usable]
    if not len(bounds) or bounds.min() >= 1.0:
        return 1.0, None
    at = int(bounds.argmin())
    return float(bounds[at]), float(deltas[usable][at])
