"""How often intervals over texts hold the truth, where texts come in groups and where they do not.

    python benchmarks/coverage.py [--worlds 300]

A world has a forget and a retain domain of known densities in eight dimensions, normal or with
heavy tails (Student's t with 3 degrees of freedom); texts of a group share a part of their
features, the intraclass correlation. Scores are those of a logistic regression, cross-fitted with
groups in one fold. Held against the truth are the AUC's interval (the truth is that of the ranking
by all texts), the bound on the share of a list that the retain domain would produce as well, at all
budgets at once, and the band of removal at budget 0.5. `alone`: the same where folds and intervals
know of no groups, as in version 0.7.

And in how many of such embeddings the verdict says that more texts than by chance are too close to
a neighbour (`close_*`), by how they stretch: normal in all of 128 directions, falling off as the
root or in proportion, with heavy tails, in 12 topics, or bent from 8 dimensions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mamushi.evidence.bootstrap import bands
from mamushi.evidence.calibration import Halves, Scores, logistic
from mamushi.evidence.dependence import close_texts
from mamushi.evidence.frontier import ranking
from mamushi.evidence.verdict import auc_interval, share_bound
from mamushi.running.threads import one_for_arithmetic
from mamushi.selection.folds import balanced_weights, stratified_folds
from report import Report, arguments

Doubles = NDArray[np.float64]
Mask = NDArray[np.bool_]

WIDTH, FOLDS, TAILS = 8, 5, 3
FRESH = 10_000
"""Texts of each domain for what the truth is an average of."""
RESAMPLES = 40
WHOLE, HALVES = 2, 2


@dataclass(frozen=True)
class World:
    """``n1`` and ``n2`` texts in groups of ``size`` with an intraclass correlation; ``spanning``
    groups hold texts of both domains. The domains' means are ``apart``."""

    n1: int
    n2: int
    size: int = 1
    icc: float = 0.0
    apart: float = 1.0
    heavy: bool = False
    spanning: bool = False

    def drawn(self, rng: np.random.Generator) -> tuple[Doubles, NDArray[np.int64]]:
        """Features (n, d), forget texts first, and codes of groups (n,)."""
        n = self.n1 + self.n2
        one, two = (np.arange(m) // self.size for m in (self.n1, self.n2))
        groups = np.concatenate([one, two + (0 if self.spanning else one[-1] + 1)])
        shared = rng.standard_normal((groups[-1] + 1 + len(one), WIDTH))[groups]
        x = np.sqrt(self.icc) * shared + np.sqrt(1 - self.icc) * rng.standard_normal((n, WIDTH))
        if self.heavy:
            x /= np.sqrt(rng.chisquare(TAILS, (n, 1)) / TAILS)
        x[: self.n1, 0] += self.apart
        return x, groups

    def fresh(self, rng: np.random.Generator) -> Doubles:
        """Independent texts (2, FRESH, d), those of the forget domain first."""
        found = replace(self, n1=FRESH, n2=FRESH, size=1, icc=0.0, spanning=False).drawn(rng)[0]
        return found.reshape(2, FRESH, WIDTH)

    def ratio(self, x: Doubles) -> Doubles:
        """The exact log p1(x)/p2(x)."""
        moved = x - self.apart * np.eye(WIDTH)[0]
        near, far = (moved**2).sum(-1), (x**2).sum(-1)
        if self.heavy:
            near, far = ((TAILS + WIDTH) * np.log1p(each / TAILS) for each in (near, far))
        return np.asarray((far - near) / 2)


WORLDS = {
    "independent": World(130, 270),
    "independent_150": World(50, 100),
    "independent_1_to_20": World(50, 1000),
    "independent_heavy_tails": World(130, 270, heavy=True),
    "independent_auc_0.98": World(130, 270, apart=2.9),
    "independent_150_auc_0.98": World(50, 100, apart=2.9),
    "independent_heavy_tails_auc_0.95": World(130, 270, apart=4.0, heavy=True),
    "pairs_0.5": World(130, 270, 2, 0.5),
    "pairs_0.5_150": World(50, 100, 2, 0.5),
    "pairs_0.5_1_to_20": World(50, 1000, 2, 0.5),
    "pairs_0.5_heavy_tails": World(130, 270, 2, 0.5, heavy=True),
    "pairs_0.5_auc_0.98": World(130, 270, 2, 0.5, apart=2.9),
    "pairs_0.5_over_both_domains": World(130, 270, 2, 0.5, spanning=True),
    "fives_0.3": World(130, 270, 5, 0.3),
    "fives_0.3_150": World(50, 100, 5, 0.3),
    "fives_0.3_1_to_20": World(50, 1000, 5, 0.3),
    "fives_0.3_heavy_tails": World(130, 270, 5, 0.3, heavy=True),
}


def learned(x: Doubles, forget: Mask) -> Doubles:
    """The weights (d + 1,) of a logistic regression, the intercept last."""
    design = np.column_stack([x, np.ones(len(x))])
    penalty = np.full(WIDTH + 1, 1e-3)
    return logistic(design, forget.astype(float), balanced_weights(forget), penalty)


def by_weights(x: Doubles, weights: Doubles) -> Doubles:
    """The scores of texts (..., d)."""
    return np.asarray(x @ weights[:-1] + weights[-1])


def cross_fitted(
    x: Doubles, forget: Mask, fold: NDArray[np.int64], half: Mask | None = None
) -> tuple[Doubles, list[Doubles]]:
    """Scores (n,) and the weights of each fold, learned from a half of the others if there is
    one."""
    score, weights = np.empty(len(x)), []
    for number in range(FOLDS):
        held = fold == number
        of = ~held if half is None else ~held & half
        weights.append(learned(x[of], forget[of]))
        score[held] = by_weights(x[held], weights[-1])
    return score, weights


@dataclass(frozen=True)
class Fitted:
    """Scores with halves, those of the whole refits, and the weights of each fold."""

    scores: Scores
    refits: list[Doubles]
    weights: list[Doubles]


def fitted(
    x: Doubles, forget: Mask, groups: NDArray[np.int64] | None, seeds: NDArray[np.int64]
) -> Fitted:
    """What the workflow would have, with ``groups`` or without."""
    folds = [stratified_folds(forget, FOLDS, int(s), groups).astype(np.int64) for s in seeds]
    score, weights = cross_fitted(x, forget, folds[0])
    refits = [cross_fitted(x, forget, fold)[0] for fold in folds[1 : 1 + WHOLE]]
    halves = []
    for fold, seed in zip(folds[-HALVES:], seeds, strict=False):
        half = stratified_folds(forget, 2, int(seed), groups) == 0
        a, b = (cross_fitted(x, forget, fold, own)[0] for own in (half, ~half))
        halves.append(Halves(a, b, fold))
    return Fitted(Scores(score, forget, folds[0], halves, groups), refits, weights)


def told(world: World, rng: np.random.Generator, banded: bool) -> dict[str, float]:
    """Which intervals of one world hold, 1 for one that does, and how wide they are."""
    x, groups = world.drawn(rng)
    forget = np.arange(len(x)) < world.n1
    seeds = rng.integers(2**31, size=WHOLE + HALVES)
    fresh = world.fresh(rng)
    truth = true_auc(fresh, learned(x, forget))
    found: dict[str, float] = {}
    for label, own in (("", groups), ("_alone", None)):
        if label and world.size == 1:
            continue
        made = fitted(x, forget, own, seeds)
        score = made.scores.score
        _, low, high = auc_interval(score, forget, made.refits, own)
        found |= {f"auc{label}": low <= truth <= high, f"auc_width{label}": high - low}
        above = np.sort(np.concatenate([by_weights(fresh[1], each) for each in made.weights]))
        found[f"retain_share{label}"] = bound_holds(score, forget, own, above)
        if banded:
            removed = true_removal(world, fresh, made.weights)
            low, high = band(made.scores)
            found |= {
                f"removal{label}": low <= removed <= high,
                f"removal_width{label}": high - low,
            }
    return found


def true_auc(fresh: Doubles, weights: Doubles) -> float:
    """The AUC of a linear score on texts without end."""
    one, two = np.sort(by_weights(fresh, weights), axis=1)
    return float(np.searchsorted(two, one).mean() / FRESH)


def bound_holds(
    score: Doubles, forget: Mask, groups: NDArray[np.int64] | None, above: Doubles
) -> bool:
    """Whether the bound on the retain share is above the true one at all budgets at once."""
    falling = -np.sort(-score[forget])
    shares = np.arange(1, len(falling) + 1) / len(falling)
    true = np.minimum((1 - np.searchsorted(above, falling) / len(above)) / shares, 1.0)
    retain, own = score[~forget], None if groups is None else groups[~forget]
    bound = [share_bound(retain, t, b, own)[1] for t, b in zip(falling, shares, strict=True)]
    return bool((bound >= true).all())


def true_removal(world: World, fresh: Doubles, weights: list[Doubles]) -> float:
    """KL(p1 || p_-S) in nats where half of the forget domain goes by the score of a fold, the mean
    over folds."""
    pi1 = world.n1 / (world.n1 + world.n2)
    ratio = world.ratio(fresh[0])
    found = []
    for each in weights:
        score = by_weights(fresh[0], each)
        left = np.where(score >= np.median(score), 0.0, pi1)
        found.append(np.log1p(-pi1 / 2) - np.log(left + (1 - pi1) * np.exp(-ratio)).mean())
    return float(np.mean(found))


def band(scores: Scores) -> tuple[float, float]:
    """The ends of the band of removal at budget 0.5."""
    one, score = scores.forget, scores.score
    n1 = int(one.sum())
    rank = np.empty(n1)
    rank[np.argsort(-score[one], kind="stable")] = np.arange(1, n1 + 1)
    ranks = ranking(score[one], rank, score[~one], by_chance=False)
    counts = np.array([0, n1 // 2, n1])
    found = bands(scores, {"own": ranks}, counts, RESAMPLES, 0)["own"]["removal"]
    return float(found.low[1]), float(found.high[1])


def embedded(kind: str, rng: np.random.Generator, n: int, size: int, icc: float) -> Doubles:
    """Embeddings (n, 128) of texts of which as many as ``size`` share a group."""
    groups, d = np.arange(n) // size, 128
    x = np.sqrt(icc) * rng.standard_normal((n, d))[groups]
    x += np.sqrt(1 - icc) * rng.standard_normal((n, d))
    along = np.arange(1, d + 1)
    if kind in FALLING:
        x *= along ** -FALLING[kind]
    elif kind == "heavy_tails":
        x /= np.sqrt(rng.chisquare(TAILS, (n, 1)) / TAILS)
    elif kind == "topics":
        x += 1.5 * rng.standard_normal((12, d))[rng.integers(12, size=n)[groups]]
    elif kind == "bent":
        x = np.tanh(x[:, :8] @ rng.standard_normal((8, d)) / 2)
    return x


FALLING = {"normal": 0.0, "falling_as_root": 0.5, "falling": 1.0}
KINDS = (*FALLING, "heavy_tails", "topics", "bent")


def close(kind: str, size: int, icc: float, number: int) -> bool:
    """Whether texts of such embeddings are said to be too close."""
    rng = np.random.default_rng([KINDS.index(kind), size, number])
    x = np.concatenate([embedded(kind, rng, n, size, icc) for n in (150, 300)])
    return close_texts(x, np.arange(450) < 150).found


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--worlds", type=int, default=300, help="of each kind")
    parser.add_argument("--banded", type=int, default=200, help="of which removal has a band")
    parser.add_argument("--close", type=int, default=100, help="of embeddings of each kind")
    parser.add_argument("--only", nargs="+", choices=WORLDS, help="kinds; all of them otherwise")
    args = parser.parse_args()
    one_for_arithmetic()
    report = Report("coverage", threads=1)
    report.value("worlds_each", args.worlds)
    for place, (name, world) in enumerate(WORLDS.items()):
        if args.only and name not in args.only:
            continue
        each = [
            told(world, np.random.default_rng([place, number]), number < args.banded)
            for number in range(args.worlds)
        ]
        for what in each[0]:
            known = [one[what] for one in each if what in one]
            report.value(f"{name}_{what}", float(np.mean(known)))
    for kind in () if args.only else KINDS:
        for size, icc in ((1, 0.0), (2, 0.5), (2, 0.9), (5, 0.3), (5, 0.5)):
            seen = [close(kind, size, icc, number) for number in range(args.close)]
            report.value(f"close_{kind}_{size}_texts_{icc:g}", float(np.mean(seen)))
    print(report.write(args.results))


if __name__ == "__main__":
    main()
