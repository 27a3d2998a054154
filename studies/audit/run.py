"""How often the intervals of `mamushi audit` hold the truth, and how wide they are.

    python -m studies.audit.run [--draws 400]

A world is a corpus of 10,000 texts, of which 1%, 5% or 20% are of the domain, and a list of as many
texts, of which half or nine in ten are. Ranks are good (what the list misses lies about its end)
or bad (anywhere), while what is anticipated is always that they are good. So an audit is drawn
again and again, of 100 or 300 answers, of which a tenth is unsure in the last row, and its interval
made in two ways: melded, and by Jeffreys' prior in each stratum. Each value is the coverage of the
truth, then half of the mean width. In rows of ``readers`` each of these errs in so many percent of
the texts, for himself; a text on which two or three differ is unsure.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mamushi.running.threads import one_for_arithmetic
from mamushi_extras.audit.auditing import (
    QUANTITIES,
    Answers,
    Strata,
    allocate,
    estimates,
    sample,
    strata,
)
from studies.lib.report import Report, arguments

TEXTS = 10_000
SHIFTS = {"melded": (0.0, 1.0), "jeffreys": (0.5, 0.5)}
DRAWS = 2000
"""For one interval."""


@dataclass(frozen=True)
class World:
    """A corpus by rank: a ``share`` of it is of the domain, and ``precision`` of its list."""

    share: float
    precision: float
    good: bool

    @property
    def size(self) -> int:
        """Return how many texts the list has."""
        return round(self.share * TEXTS)

    def likely(self, good: bool) -> NDArray[np.float64]:
        """Return how likely each text is of the domain: without ``good`` ranks the same all over
        the list, and all over the rest."""
        place, cut = np.arange(TEXTS), self.size
        listed = place < cut
        falls = np.where(listed, 1.5 - place / cut, np.exp(-(place - cut) / cut))
        shape = falls if good else np.ones(TEXTS)
        expected = np.where(listed, self.precision * cut, (1 - self.precision) * cut)
        sums = np.where(listed, shape[listed].sum(), shape[~listed].sum())
        return np.minimum(shape * expected / sums, 1.0)

    def truth(self, rng: np.random.Generator) -> NDArray[np.bool_]:
        """Draw which texts are of the domain, as many as there are to be on each side."""
        likely, of_domain = self.likely(self.good), np.zeros(TEXTS, dtype=np.bool_)
        inside = round(self.precision * self.size)
        for side, count in (
            (np.arange(self.size), inside),
            (np.arange(self.size, TEXTS), self.size - inside),
        ):
            weights = likely[side] / likely[side].sum()
            of_domain[rng.choice(side, count, replace=False, p=weights)] = True
        return of_domain


def measure(
    world: World,
    answers: int,
    unsure: float,
    draws: int,
    rng: np.random.Generator,
    mistakes: float = 0.0,
    readers: int = 1,
) -> dict[str, str]:
    """Return coverage and half of the mean width, by way and quantity."""
    of_domain, place = world.truth(rng), np.arange(TEXTS)
    listed = place < world.size
    codes = strata((~listed).astype(np.int64), place)
    divided = Strata.of(codes, listed, world.likely(good=True))
    true = {
        "precision": of_domain[listed].mean(),
        "recall": of_domain[listed].sum() / of_domain.sum(),
        "before": of_domain.mean(),
        "after": of_domain[~listed].mean(),
    }
    counts, h = allocate(divided, answers), len(divided.sizes)
    held: dict[str, list[tuple[bool, float]]] = {}
    for _ in range(draws):
        drawn = sample(codes, counts, rng)
        # Nobody is sure of a text of the domain more seldom than of another.
        doubt = rng.random(len(drawn)) < unsure * (0.5 + of_domain[drawn])
        votes = (of_domain[drawn] ^ (rng.random((readers, len(drawn))) < mistakes)).sum(axis=0)
        doubt |= (votes > 0) & (votes < readers)
        answered = [
            np.bincount(codes[drawn], weights=values, minlength=h).astype(np.float64)
            for values in (np.ones(len(drawn)), (2 * votes > readers) & ~doubt, doubt)
        ]
        ways = {
            name: estimates(divided, Answers(*answered), rng, s, DRAWS)
            for name, s in SHIFTS.items()
        }
        for (method, intervals), name in itertools.product(ways.items(), QUANTITIES):
            values = intervals[name]
            inside = values.low <= true[name] + 1e-12 and true[name] <= values.high + 1e-12
            held.setdefault(f"{method}_{name}", []).append((inside, (values.high - values.low) / 2))
    return {
        name: f"{np.mean([a for a, _ in values]):.3f} {np.nanmean([b for _, b in values]):.3f}"
        for name, values in held.items()
    }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--draws", type=int, default=400)
    args = parser.parse_args()
    one_for_arithmetic()
    report, rng = Report("audit"), np.random.default_rng(0)
    worst: dict[str, float] = {}
    for share, precision, good, answers, unsure in [
        *itertools.product((0.01, 0.05, 0.2), (0.5, 0.9), (True, False), (100, 300), (0.0,)),
        (0.05, 0.9, True, 300, 0.1),
    ]:
        coverage = measure(World(share, precision, good), answers, unsure, args.draws, rng)
        ranks = "good" if good else "bad"
        named = f"share{share}_precision{precision}_{ranks}_{answers}" + "_unsure" * (unsure > 0)
        for name, values in coverage.items():
            report.value(f"{named}_{name}", values)
            worst[name] = min(worst.get(name, 1.0), float(values.split()[0]))
    rows = itertools.product((0.01, 0.05, 0.2), (0.02, 0.05), (1, 2, 3))
    for share, mistakes, readers in rows:
        world = World(share, 0.9, True)
        coverage = measure(world, 300, 0.0, args.draws, rng, mistakes, readers)
        for name in ("melded_precision", "melded_recall"):
            report.value(f"share{share}_err{mistakes}_readers{readers}_{name}", coverage[name])
    for name, least in worst.items():
        report.value(f"least_{name}", f"{least:.3f}")
    report.write(args.results)


if __name__ == "__main__":
    main()
