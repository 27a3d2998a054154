"""Whether an AUC's interval holds where texts come in groups that no column names.

    python -m studies.hidden_groups.run [--draws 200]

A world is texts of two domains as normal vectors, or topics, or a curved surface with noise. Texts
of a group, an author's or copies, share a part of their vectors and their domain, but for groups
across the domains. A logistic regression is cross-fitted as ``mamushi_lr`` is, which knows no
groups. The truth is the AUC of its fits on 8,000 new texts of new groups, and of the right labels
where some of those it learned from are wrong. Reported are how often the interval for independent
texts holds it, how often one is given, how often that holds, and how much wider it is.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mamushi.evidence.dependence import hidden_groups
from mamushi.evidence.verdict import auc_interval, auc_of_right_labels
from mamushi.registry import load, plugin
from mamushi.running.threads import one_for_arithmetic
from mamushi.selection.metrics import auc
from mamushi.selection.pool import Pool
from studies.lib.report import Report, arguments

Doubles = NDArray[np.float64]
Codes = NDArray[np.int64]
FRESH = 4000
"""New texts of each domain."""
TOPICS, BENDS = 8, 6
EXACT = {"solver": "newton-cholesky", "alpha": 1e-3}


def groups_of(size: int) -> Callable[[np.random.Generator, int], Codes]:
    return lambda rng, n: np.arange(n) // size


def mixed(rng: np.random.Generator, n: int) -> Codes:
    sizes = rng.choice([1, 1, 2, 3, 5, 10, 20], n)
    return np.repeat(np.arange(n), sizes)[:n]


def copied(rng: np.random.Generator, n: int) -> Codes:
    """A fifth of the texts in pairs."""
    return np.concatenate([np.repeat(np.arange(n // 10), 2), np.arange(n // 10, n)])[:n]


def heavy(rng: np.random.Generator, n: int) -> Codes:
    """A fifth of the texts in one group, which is not drawn again."""
    return np.maximum(np.arange(n) - n // 5, 0)


@dataclass(frozen=True)
class World:
    """``shared`` is the part of the vectors' variance that a group shares, in all directions or, if
    ``narrow``, in three, of which one tells the domains apart."""

    groups: Callable[[np.random.Generator, int], Codes] = groups_of(1)
    shared: float = 0.0
    kind: str = "normal"
    n: int = 600
    width: int = 32
    apart: float = 1.2
    across: bool = False
    narrow: bool = False
    wrong: float = 0.0


class Source:
    """Where the texts of a ``world`` come from."""

    def __init__(self, world: World, rng: np.random.Generator) -> None:
        self.world, self.rng, d = world, rng, world.width
        self.direction = rng.normal(size=d)
        self.direction /= np.linalg.norm(self.direction)
        self.topics = rng.normal(size=(TOPICS, d))
        self.shares = [rng.dirichlet(np.ones(TOPICS)) for _ in range(2)]
        self.bend = rng.normal(size=(BENDS, d))
        three = np.column_stack([self.direction, rng.normal(size=(d, 2))])
        self.three, _ = np.linalg.qr(three)

    def vectors(self, forget: NDArray[np.bool_], groups: Codes) -> Doubles:
        """Draw vectors (n, d) of texts of these domains and groups."""
        n, d, rng, share = len(forget), self.world.width, self.rng, self.world.shared
        alone, together = rng.normal(size=(n, d)), rng.normal(size=(n, d))[groups]
        parts = np.sqrt(share) * together + np.sqrt(1 - share) * alone
        if self.world.narrow:
            parts = alone + (parts - alone) @ self.three @ self.three.T
        if self.world.kind == "topics":
            drawn = [rng.choice(TOPICS, n, p=shares)[groups] for shares in self.shares]
            parts += self.topics[np.where(forget, *drawn)]
        if self.world.kind == "curved":
            parts = 0.3 * parts + np.tanh(rng.normal(size=(n, BENDS)) @ self.bend / 2)
        return parts + self.world.apart * forget[:, None] * self.direction

    def texts(self) -> tuple[Doubles, NDArray[np.bool_]]:
        """Draw what is ranked, two fifths of it forget texts."""
        n1 = int(0.4 * self.world.n)
        forget = np.arange(self.world.n) < n1
        if self.world.across:
            groups = self.rng.permutation(self.world.groups(self.rng, self.world.n))
        else:
            sides = [self.world.groups(self.rng, n) for n in (n1, self.world.n - n1)]
            groups = np.concatenate([sides[0], sides[0].max() + 1 + sides[1]])
        return self.vectors(forget, groups), forget


def drawn(world: World, number: int) -> dict[str, float]:
    """Rank the texts of one draw of a world, and say what its intervals hold."""
    rng = np.random.default_rng([0, number])
    source = Source(world, rng)
    vectors, right = source.texts()
    x = vectors.astype(np.float16)
    forget = right ^ (rng.random(world.n) < world.wrong)
    pool = Pool(np.array([f"{i:06d}" for i in range(world.n)], dtype=object), forget, x)
    settings = {**plugin("selector", "mamushi_lr").defaults, **EXACT}
    with contextlib.redirect_stderr(io.StringIO()):
        scored = load("selector", "mamushi_lr").score(pool, settings, number)
    new = np.arange(2 * FRESH) < FRESH
    fresh = np.column_stack([source.vectors(new, np.arange(2 * FRESH)), np.ones(2 * FRESH)])
    # A fold's scores are linear in the vectors, so they tell its weights.
    ranked = np.column_stack([x.astype(np.float64), np.ones(world.n)])
    folds = [scored.fold == i for i in range(settings["folds"])]
    fits = [np.linalg.lstsq(ranked[held], scored.scores[held])[0] for held in folds]
    truth = float(np.mean([auc(fresh @ fit, new) for fit in fits]))
    value, low, high = auc_interval(scored.scores, forget)
    texts = hidden_groups(x, forget)
    row = {"auc": value, "truth": truth, "before_held": low <= truth <= high}
    row |= {"before_width": high - low, "withheld": texts.reason is not None}
    near, far = texts.ends(value, low, high)
    if near is not None and far is not None:
        row |= {"held": near <= truth <= far, "width": far - near}
        row["widened"] = (far - near) / (high - low)
        row["held_if_wrong"] = near <= truth <= auc_of_right_labels(far)
    return row


WORLDS = {
    "independent": World(),
    "independent_topics": World(kind="topics"),
    "independent_curved": World(kind="curved", apart=0.5),
    "independent_300": World(n=300),
    "pairs": World(groups_of(2), 0.5),
    "fives": World(groups_of(5), 0.3),
    "fives_300": World(groups_of(5), 0.5, n=300, width=16),
    "fives_far_apart": World(groups_of(5), 0.3, apart=2.5),
    "twenties": World(groups_of(20), 0.3),
    "twenties_weak": World(groups_of(20), 0.1),
    "twenties_topics": World(groups_of(20), 0.4, kind="topics"),
    "mixed": World(mixed, 0.5),
    "copies": World(copied, 0.98),
    "across_fives": World(groups_of(5), 0.5, across=True),
    "across_twenties": World(groups_of(20), 0.5, across=True),
    "heavy": World(heavy, 0.5),
    "narrow_twenties": World(groups_of(20), 0.5, narrow=True),
    "wrong_0.02": World(wrong=0.02),
    "wrong_0.05": World(wrong=0.05),
    "wrong_0.10": World(wrong=0.10),
}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--worlds", nargs="*", default=[*WORLDS])
    args = parser.parse_args()
    one_for_arithmetic()
    report = Report("hidden_groups", threads=1)
    report.value("draws", args.draws)
    for name in args.worlds:
        rows = [drawn(WORLDS[name], number) for number in range(args.draws)]
        for key in ("auc", "truth", "before_held", "before_width"):
            report.value(f"{name}_{key}", float(np.mean([row[key] for row in rows])))
        offered = [row for row in rows if not row["withheld"]]
        report.value(f"{name}_given", len(offered) / len(rows))
        missed = sum(not row["held"] for row in offered)
        report.value(f"{name}_held_or_withheld", 1 - missed / len(rows))
        if offered:
            for key in ("held", "held_if_wrong", "width", "widened"):
                report.value(f"{name}_{key}", float(np.mean([row[key] for row in offered])))
    report.write(args.results)


if __name__ == "__main__":
    main()
