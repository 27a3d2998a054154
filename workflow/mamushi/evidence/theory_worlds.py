"""Random worlds in which both sides of the paper's transfer bound are known exactly.

The theorem sees p1, p2 and an estimated score only through the joint law of (l*, lhat) under p1, in
any dimension, because p2 = p1 e^-l*. A world is such a law: l* has a piecewise-constant density on
[-B, B] with E_p1[e^-l*] = 1, and lhat is piecewise linear in l* within each of several strata.
Regions are then unions of intervals whose ends are known in closed form, M is a maximum over bins,
and all divergences are Gauss-Legendre sums over pieces without a kink.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mamushi.evidence.theory import (
    bce_regret,
    least_mass_bound,
    mass_bound,
    preservation,
    removal,
    score_error_constant,
    transfer,
)
from mamushi.selection.arrays import Doubles, Mask

_STRATA = 3
_ORDER = 8
_QUANTILES = (0.05, 0.5, 0.95)


@dataclass(frozen=True)
class World:
    """Cells (n,) of l* from ``left`` to ``right`` with the p1-mass ``mass``, uniform within; there
    lhat runs linearly from ``start`` to ``end``, which differ. ``bound`` is B >= |l*|.

    Cells of different strata cover the same l*. ``mass`` sums to 1.
    """

    left: Doubles
    right: Doubles
    mass: Doubles
    start: Doubles
    end: Doubles
    bound: float

    def error(self) -> float:
        """Return ||lhat - l*||_L1(p1)."""
        first, last = self.start - self.left, self.end - self.right
        size = np.abs(first) + np.abs(last)
        crosses = first * last < 0
        safe = np.where(size > 0, size, 1.0)
        mean = np.where(crosses, (first**2 + last**2) / safe, size) / 2.0
        return float(self.mass @ mean)

    def density(self, low: float, high: float) -> float:
        """Return M, the largest density of l* under p1 on [low, high]."""
        edges = np.unique(np.concatenate([self.left, self.right]))
        at = np.searchsorted(edges, self.left)
        total = np.bincount(at, self.mass, len(edges) - 1) / np.diff(edges)
        touched = (edges[:-1] <= high) & (edges[1:] >= low)
        return float(total[touched].max(initial=0.0))


def tau_of(mass: Doubles, start: Doubles, end: Doubles, b: float) -> float:
    """Return tau with p1(score >= tau) = b, 0 < b < 1, for a score that runs from ``start`` to
    ``end`` in each cell. That mass is falling and linear in tau between the ends of the cells."""
    knots = np.unique(np.concatenate([start, end]))
    top, width = np.maximum(start, end), np.abs(end - start)

    def above(tau: float) -> float:
        return float(mass @ np.clip((top - tau) / width, 0.0, 1.0))

    low, high = 0, len(knots) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if above(knots[middle]) >= b else (low, middle)
    from_low, from_high = above(knots[low]), above(knots[high])
    step = (from_low - b) / (from_low - from_high)
    return float(knots[low] + step * (knots[high] - knots[low]))


@dataclass(frozen=True)
class Nodes:
    """Quadrature nodes (k,): l*, lhat, the weights of p1 and p2, and the two regions."""

    ratio: Doubles
    estimated: Doubles
    weights1: Doubles
    weights2: Doubles
    optimal: Mask
    selected: Mask


def nodes(world: World, tau: float, estimated_tau: float) -> Nodes:
    """Return nodes with breaks at the bounds of S* and Shat, where l* = ``tau`` and where lhat =
    ``estimated_tau``, so that each piece lies inside or outside of each region."""
    left, right, start, end = world.left, world.right, world.start, world.end
    slope = (end - start) / (right - left)
    cut = np.clip(left + (estimated_tau - start) / slope, left, right)
    breaks = np.sort(np.stack([left, np.clip(tau, left, right), cut, right], axis=1), axis=1)
    low, width = breaks[:, :-1, None], np.diff(breaks, axis=1)[:, :, None]
    x, w = np.polynomial.legendre.leggauss(_ORDER)
    ratio = low + width * (x + 1.0) / 2.0
    weights = (world.mass / (right - left))[:, None, None] * width * w / 2.0
    middle = low + width / 2.0
    score = start[:, None, None] + slope[:, None, None] * (middle - left[:, None, None])
    estimated = start[:, None, None] + slope[:, None, None] * (ratio - left[:, None, None])
    seen = weights.ravel() > 0
    return Nodes(
        ratio.ravel()[seen],
        estimated.ravel()[seen],
        weights.ravel()[seen],
        (weights * np.exp(-ratio)).ravel()[seen],
        np.broadcast_to(middle >= tau, ratio.shape).ravel()[seen],
        np.broadcast_to(score >= estimated_tau, ratio.shape).ravel()[seen],
    )


def random_world(rng: np.random.Generator) -> World:
    """Draw B from 0.3 to 5, bins of l* unequal in width and mass, some of them empty, and a score.

    The masses are tilted by e^(theta t) to meet E_p1[e^-l*] = 1, which has one solution theta.
    """
    bound = float(rng.uniform(0.3, 5.0))
    bins = int(rng.integers(6, 24))
    edges = np.concatenate([[-1.0], np.sort(rng.uniform(-1.0, 1.0, bins - 1)), [1.0]])
    edges = bound * (0.5 * edges + 0.5 * np.linspace(-1.0, 1.0, bins + 1))
    mass = rng.gamma(rng.uniform(0.3, 3.0), size=bins) + 1e-12
    mass[1:-1] *= rng.random(bins - 2) > rng.choice([0.0, 0.3])
    mass = _tilted(edges, mass)
    share = rng.dirichlet(np.full(_STRATA, 2.0))
    left, right = np.tile(edges[:-1], _STRATA), np.tile(edges[1:], _STRATA)
    start, end = _random_score(edges, bound, rng)
    return World(left, right, np.outer(share, mass).ravel(), start, end, bound)


def _tilted(edges: Doubles, mass: Doubles) -> Doubles:
    centre = (edges[:-1] + edges[1:]) / 2.0
    inverse_ratio = (np.exp(-edges[:-1]) - np.exp(-edges[1:])) / np.diff(edges)

    def at(theta: float) -> Doubles:
        exponent = theta * centre
        tilted: Doubles = mass * np.exp(exponent - exponent.max())
        return tilted / tilted.sum()

    low, high = -1.0, 1.0
    while at(low) @ inverse_ratio < 1.0:
        low *= 2.0
    while at(high) @ inverse_ratio > 1.0:
        high *= 2.0
    for _ in range(200):
        middle = (low + high) / 2.0
        low, high = (middle, high) if at(middle) @ inverse_ratio > 1.0 else (low, middle)
    return at((low + high) / 2.0)


def _outliers(t: Doubles, sigma: float, rng: np.random.Generator) -> Doubles:
    hit = rng.random(t.shape) < 0.1
    return t + 0.01 * sigma * rng.normal(size=t.shape) + 5.0 * hit * rng.normal(size=t.shape)


ESTIMATES: Mapping[str, Callable[[Doubles, float, np.random.Generator], Doubles]] = {
    "noisy": lambda t, sigma, rng: t + sigma * rng.normal(size=t.shape),
    "scaled": lambda t, sigma, rng: (
        rng.uniform(0.3, 3.0) * t + rng.normal() + sigma * rng.normal(size=t.shape)
    ),
    "saturated": lambda t, sigma, rng: (
        np.tanh(rng.uniform(0.3, 2.0) * t) + 0.1 * sigma * rng.normal(size=t.shape)
    ),
    "shifted by stratum": lambda t, sigma, rng: t + sigma * rng.normal(size=(_STRATA, 1)),
    "outliers": _outliers,
    "uninformed": lambda t, sigma, rng: (
        rng.choice([-1.0, 0.0]) * t + (sigma + 0.01) * rng.normal(size=t.shape)
    ),
}
"""Estimates of l* at ``t`` (_STRATA, n) with an error of the size ``sigma``."""


def _random_score(
    edges: Doubles, bound: float, rng: np.random.Generator
) -> tuple[Doubles, Doubles]:
    """Draw values of lhat at the ends of the cells, stratum after stratum. Half of the scores are
    shrunk into [-B, B], as the lemma from BCE regret to L1 asks."""
    sigma = float(10.0 ** rng.uniform(-4.0, 0.5))
    t = np.broadcast_to(edges, (_STRATA, len(edges)))
    make = [*ESTIMATES.values()][int(rng.integers(len(ESTIMATES)))]
    values = make(t, sigma, rng)
    if rng.random() < 0.5:
        values = values * min(1.0, bound / float(np.abs(values).max()))
    return values[:, :-1].ravel(), values[:, 1:].ravel()


BOUNDS = ("drawn", "best", "mass", "bce")
"""Of both regrets: ``transfer`` at a random delta, at the best one and from p1(E) itself; and at
the best delta from the excess BCE risk."""
TOLERANCE = 1e-11
"""Rounding of a regret, the difference of two divergences, in nats."""
NEGLIGIBLE = 1e-6
"""A regret in nats below which its ratio to a bound says nothing."""


def outcome(world: World, rng: np.random.Generator) -> dict[str, float]:
    """Draw pi1, b, delta0 and delta, and set the regrets of lhat in ``world`` beside the bounds.

    ``error`` is ||lhat - l*||_L1(p1), ``mass`` p1(S* symmetric difference Shat), ``regret_bce`` the
    excess BCE risk at equal priors, ``removal`` alpha* - alphahat and ``preservation`` epshat -
    eps*; ``{bound}_removal`` and ``{bound}_preservation`` limit these for each of ``BOUNDS``. Those
    from the BCE risk are NaN where lhat leaves [-B, B].
    """
    pi1, b = float(rng.uniform(0.05, 0.95)), float(rng.uniform(0.02, 0.98))
    tau = tau_of(world.mass, world.left, world.right, b)
    estimated_tau = tau_of(world.mass, world.start, world.end, b)
    at = nodes(world, tau, estimated_tau)
    r = abs(estimated_tau - tau)
    delta0 = r + float(10.0 ** rng.uniform(-2.0, 0.7))
    m = world.density(tau - delta0, tau + delta0)
    error = world.error()
    least = least_mass_bound(error, m, delta0, r)
    drawn = mass_bound(error, m, float(rng.uniform(0.01, 1.0)) * (delta0 - r), r)
    mass = float(at.weights1 @ (at.optimal != at.selected))
    regret = bce_regret(at.ratio, at.estimated, at.weights2)
    confined = max(np.abs(world.start).max(), np.abs(world.end).max()) <= world.bound

    error_bound = score_error_constant(world.bound) * max(regret, 0.0) ** 0.5
    bce_limit = least_mass_bound(error_bound, m, delta0, r) if confined else np.nan
    limits = (
        transfer(drawn, world.bound, pi1),
        transfer(least, world.bound, pi1),
        transfer(mass, world.bound, pi1),
        transfer(bce_limit, world.bound, pi1),
    )
    kept = {"optimal": 1.0 - at.optimal, "selected": 1.0 - at.selected}
    removed = {key: removal(at.ratio, k, pi1, at.weights1) for key, k in kept.items()}
    preserved = {key: preservation(at.ratio, k, pi1, b, at.weights2) for key, k in kept.items()}
    values = {"pi1": pi1, "b": b, "bound": world.bound, "error": error, "regret_bce": regret}
    values |= {
        "mass": mass,
        "removal": removed["optimal"] - removed["selected"],
        "preservation": preserved["selected"] - preserved["optimal"],
    }
    for name, pair in zip(BOUNDS, limits, strict=True):
        values |= {f"{name}_removal": pair.removal, f"{name}_preservation": pair.preservation}
    return values


def outcomes(worlds: int, seed: int) -> dict[str, Doubles]:
    """Return the values of ``outcome`` as columns (worlds,), for worlds drawn from ``seed``."""
    rng = np.random.default_rng(seed)
    rows = [outcome(random_world(rng), rng) for _ in range(worlds)]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def looseness(worlds: int, seed: int) -> list[dict[str, Any]]:
    """Return how loose each bound is, by objective.

    ``worlds`` are those to which the bound applies, and it holds in ``held``, which the theorem
    says are all. The ratios bound / regret are of the worlds with a regret above ``NEGLIGIBLE``,
    None where there is none.
    """
    columns = outcomes(worlds, seed)
    rows = []
    for objective in ("removal", "preservation"):
        for name in BOUNDS:
            limit, regret = columns[f"{name}_{objective}"], columns[objective]
            applies = ~np.isnan(limit)
            limit, regret = limit[applies], regret[applies]
            some = regret > NEGLIGIBLE
            ratio = limit[some] / regret[some]
            low, median, high = (
                np.quantile(ratio, _QUANTILES).tolist() if len(ratio) else [None] * len(_QUANTILES)
            )
            rows.append(
                {
                    "bound": f"{name}_{objective}",
                    "worlds": int(applies.sum()),
                    "held": int((regret <= limit + TOLERANCE).sum()),
                    **{"ratio_q05": low, "ratio_median": median, "ratio_q95": high},
                }
            )
    return rows
