"""How loose the paper's transfer bound is, over random worlds in which both sides are known.

    python -m studies.theory.run [--worlds 1000]

The theorem sees p1, p2 and an estimated score only through the joint law of (l*, lhat) under p1,
because p2 = p1 e^-l*. A world is such a law: l* has a piecewise-constant density on [-B, B] with
E_p1[e^-l*] = 1, and lhat is constant on each cell of l* within each of three strata. Regions are
unions of cells, M is a maximum over bins, and divergences are Gauss-Legendre sums over cells.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from mamushi_extras.theory import statements as theory
from studies.lib.report import Report, arguments
from studies.theory import bounds

Doubles = NDArray[np.float64]
STRATA, ORDER = 3, 8
BOUNDS = ("best", "mass", "bce")
"""``transfer`` at the best delta and from p1(E) itself; and at the best delta from the excess BCE
risk, which applies where |lhat| <= B."""
ROUNDING, NEGLIGIBLE = 1e-11, 1e-6
"""Of a regret in nats, and a regret below which its ratio to a bound says nothing."""


class World(NamedTuple):
    """Bins of l* between ``edges`` (k + 1,) with the p1-mass ``mass`` (k,), uniform within, and the
    ``share`` (STRATA,) and ``score`` (STRATA, k) of each stratum; B is the last edge."""

    edges: Doubles
    mass: Doubles
    share: Doubles
    score: Doubles


def random_world(rng: np.random.Generator) -> World:
    """Draw B from 0.3 to 5, bins unequal in width and mass, some of them empty, and a score whose
    error is small or large, or that knows nothing. Masses are tilted to meet E_p1[e^-l*] = 1."""
    bound, bins = float(rng.uniform(0.3, 5.0)), int(rng.integers(6, 24))
    edges = np.concatenate([[-1.0], np.sort(rng.uniform(-1.0, 1.0, bins - 1)), [1.0]])
    edges = bound * (edges + np.linspace(-1.0, 1.0, bins + 1)) / 2
    mass = rng.gamma(rng.uniform(0.3, 3.0), size=bins) + 1e-12
    mass[1:-1] *= rng.random(bins - 2) > rng.choice([0.0, 0.3])
    centre = (edges[:-1] + edges[1:]) / 2
    inverse_ratio = (np.exp(-edges[:-1]) - np.exp(-edges[1:])) / np.diff(edges)

    def tilted(theta: float) -> Doubles:
        values: Doubles = mass * np.exp(theta * centre - np.abs(theta) * bound)
        return values / values.sum()

    theta = brentq(lambda t: tilted(t) @ inverse_ratio - 1.0, -100.0, 100.0, xtol=1e-14)
    sigma = float(10.0 ** rng.uniform(-4.0, 0.5))
    score = rng.choice([1.0, 1.0, rng.uniform(0.3, 3.0), 0.0, -1.0]) * centre
    score = score + sigma * (rng.normal(size=(STRATA, bins)) + rng.normal(size=(STRATA, 1)))
    if rng.random() < 0.5:
        score *= min(1.0, bound / float(np.abs(score).max()))
    return World(edges, tilted(theta), rng.dirichlet(np.full(STRATA, 2.0)), score)


def outcome(world: World, rng: np.random.Generator) -> dict[str, float]:
    """Draw pi1, b and delta0, and return the regrets of lhat, ``removal`` and
    ``preservation``, with ``{bound}_removal`` and ``{bound}_preservation`` for each of BOUNDS."""
    pi1, bound, width = float(rng.uniform(0.05, 0.95)), world.edges[-1], np.diff(world.edges)
    # Of all cells, the first ones by lhat go; b is the mass of such a number of them.
    order, cells = np.argsort(-world.score, axis=None), np.outer(world.share, world.mass)
    below = np.cumsum(cells.ravel()[order])
    taken = int(rng.integers(1, len(order)))
    b, estimated_tau = float(below[taken - 1]), float(world.score.ravel()[order[taken - 1]])
    above = np.append(np.cumsum(world.mass[::-1])[::-1], 0.0)
    tau = float(np.interp(b, above[::-1], world.edges[::-1]))
    chosen = np.isin(np.arange(cells.size), order[:taken]).reshape(cells.shape)

    # Bins end where S* begins, so that each lies inside or outside of both regions.
    edges = np.unique(np.append(world.edges, tau))
    bins = np.searchsorted(world.edges, (edges[:-1] + edges[1:]) / 2) - 1
    x, w = np.polynomial.legendre.leggauss(ORDER)
    ratio = edges[:-1, None] + np.diff(edges)[:, None] * (x + 1) / 2
    weight = (cells[:, bins] * np.diff(edges) / width[bins])[:, :, None] * w / 2
    l1 = np.broadcast_to(ratio, weight.shape).ravel()
    score = np.repeat(world.score[:, bins], ORDER)
    weights1, weights2 = weight.ravel(), weight.ravel() * np.exp(-l1)
    regions = (l1 >= tau, np.repeat(chosen[:, bins], ORDER))

    mass = float(weights1 @ (regions[0] != regions[1]))
    low, high = np.abs(world.score - world.edges[:-1]), np.abs(world.score - world.edges[1:])
    within = np.abs(low + high - width) < 1e-12
    mean = np.where(within, (low**2 + high**2) / (2 * width), (low + high) / 2)
    error, r = float((cells * mean).sum()), abs(estimated_tau - tau)
    delta0 = r + float(10.0 ** rng.uniform(-2.0, 0.7))
    touched = (world.edges[:-1] <= tau + delta0) & (world.edges[1:] >= tau - delta0)
    m = float((world.mass / width)[touched].max(initial=0.0))
    by_bce = (
        theory.score_error_constant(bound) * max(theory.bce_regret(l1, score, weights2), 0.0) ** 0.5
    )
    masses = (
        bounds.least_mass_bound(error, m, delta0, r),
        mass,
        bounds.least_mass_bound(by_bce, m, delta0, r)
        if np.abs(world.score).max() <= bound
        else np.nan,
    )
    removed = [bounds.removal(l1, 1.0 - region, pi1, weights1) for region in regions]
    preserved = [bounds.preservation(l1, 1.0 - region, pi1, b, weights2) for region in regions]
    values = {"removal": removed[0] - removed[1], "preservation": preserved[1] - preserved[0]}
    for name, limit in zip(BOUNDS, masses, strict=True):
        ends = zip(("removal", "preservation"), theory.transfer(limit, bound, pi1), strict=True)
        values |= {f"{name}_{of}": end for of, end in ends}
    return values


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--worlds", type=int, default=1000)
    args = parser.parse_args()
    report, rng = Report("theory"), np.random.default_rng(0)
    rows = [outcome(random_world(rng), rng) for _ in range(args.worlds)]
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    for objective in ("removal", "preservation"):
        for name in BOUNDS:
            limit, regret = columns[f"{name}_{objective}"], columns[objective]
            applies = ~np.isnan(limit)
            held = int((regret <= limit + ROUNDING)[applies].sum())
            report.value(f"{name}_{objective}_held", f"{held} of {int(applies.sum())}")
            some = applies & (regret > NEGLIGIBLE)
            ratio = float(np.median(limit[some] / regret[some]))
            report.value(f"{name}_{objective}_over_regret", ratio)
    report.write(args.results)


if __name__ == "__main__":
    main()
