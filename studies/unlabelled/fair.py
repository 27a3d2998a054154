"""Which numbers of a corpus without labels hold when examples are no fair sample of the domain.

    python -m studies.unlabelled.fair

In worlds of known truth: half of the domain is of a second kind, nearer to the rest. Examples are
drawn at random (``fair``), by how extreme they are (``worst``), of the first kind alone (``kind``),
few (``few``) or one in twenty wrong (``dirty``); wanted texts at random or of the half that is
farthest from the domain (``far``). A cross-fitted logistic regression scores all. By what was said
to be fair: in how many draws share, precision and recall of a list had an end, and in how many of
these their interval held the truth.
"""

from collections import defaultdict
from itertools import product

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from mamushi_extras.unlabelled.corpus import Corpus
from mamushi_extras.unlabelled.share import LIKE, UNLIKE
from studies.lib import report

Doubles = NDArray[np.float64]
WIDTH, CORPUS, SHARE, EXAMPLES, WANTED, LISTED = 8, 1500, 0.2, 100, 200, 250
APART = {"first": 2.4, "second": 1.4}
"""How far the two kinds of the domain are from the rest, along one axis."""
CLAIMS = {"nothing": (), "like": (LIKE,), "unlike": (UNLIKE,), "both": (LIKE, UNLIKE)}
WORLDS = [*product(("fair", "worst", "kind", "few", "dirty"), ("fair", "far"))]


def drawn(rng: np.random.Generator, n: int, kind: str) -> Doubles:
    """Draw texts (n, width) of a kind of the domain, or of the rest."""
    vectors = rng.normal(size=(n, WIDTH))
    vectors[:, 0] += APART.get(kind, 0.0)
    vectors[:, 1] += 1.5 * (kind == "second")
    return vectors


def domain(rng: np.random.Generator, n: int) -> tuple[Doubles, NDArray[np.bool_]]:
    """Draw texts of the domain, and say which are of its first kind."""
    first = rng.random(n) < 0.5
    vectors = np.where(first[:, None], drawn(rng, n, "first"), drawn(rng, n, "second"))
    return vectors, first


def examples_of(rng: np.random.Generator, drawn_by: str) -> Doubles:
    """Draw examples of the domain."""
    n = 30 if drawn_by == "few" else EXAMPLES
    many, first = domain(rng, 20 * n)
    if drawn_by == "worst":
        many = many[np.argsort(-many[:, 0])[: 4 * n]]
    if drawn_by == "kind":
        many = many[first]
    chosen = many[:n] if drawn_by != "worst" else many[rng.permutation(len(many))[:n]]
    if drawn_by == "dirty":
        chosen[: n // 20] = drawn(rng, n // 20, "rest")
    return chosen


def wanted_of(rng: np.random.Generator, drawn_by: str) -> Doubles:
    """Draw texts that are wanted."""
    many = drawn(rng, 2 * WANTED, "rest")
    return many[np.argsort(many[:, 0])[:WANTED]] if drawn_by == "far" else many[:WANTED]


def scored(vectors: Doubles, label: NDArray[np.bool_]) -> Doubles:
    """Return the out-of-fold logits (n,) of a logistic regression."""
    scores = np.empty(len(label))
    for train, held in StratifiedKFold(5).split(vectors, label):
        fit = LogisticRegression(class_weight="balanced").fit(vectors[train], label[train])
        scores[held] = fit.decision_function(vectors[held])
    return scores


def world(seed: int, like: str, unlike: str) -> tuple[Corpus, NDArray[np.bool_]]:
    """Return a corpus with what is beside it, and which of its texts are of the domain."""
    rng = np.random.default_rng([seed, WORLDS.index((like, unlike))])
    here = rng.binomial(CORPUS, SHARE)
    parts = [
        examples_of(rng, like),
        domain(rng, here)[0],
        drawn(rng, CORPUS - here, "rest"),
        wanted_of(rng, unlike),
    ]
    part = np.repeat(np.arange(4), [len(vectors) for vectors in parts])
    order = rng.permutation(len(part))
    part, vectors = part[order], np.concatenate(parts)[order]
    examples, inside = part == 0, (part == 1) | (part == 2)
    ids = np.array([f"{row:05}" for row in range(len(part))], dtype=object)
    return Corpus(ids, scored(vectors, examples), examples, inside, part == 3), part == 1


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("--draws", type=int, default=200)
    args = parser.parse_args()
    printed = report.Report("fair", threads=1)
    for like, unlike in WORLDS:
        held: dict[tuple[str, str], list[bool | None]] = defaultdict(list)
        for seed in range(args.draws):
            corpus, true = world(seed, like, unlike)
            for claim, fair in CLAIMS.items():
                claimed = Corpus(*(vars(corpus)[name] for name in FIELDS), fair=fair)
                listed = np.isin(np.arange(len(true)), claimed.order[:LISTED])
                truth = {
                    "share": true.sum() / corpus.inside.sum(),
                    "precision": true[listed].mean(),
                    "recall": listed[true].mean(),
                }
                precision, recall = claimed.list_rates(LISTED)
                values = {"share": claimed.share(), "precision": precision, "recall": recall}
                for name, ends in values.items():
                    low, high = ends["low"], ends["high"]
                    holds = (low or 0.0) <= truth[name] <= (1.0 if high is None else high)
                    held[claim, name].append(None if low is None and high is None else holds)
        for (claim, name), draws in held.items():
            bounded = [hold for hold in draws if hold is not None]
            rate = f"{np.mean(bounded):.3f}" if bounded else "withheld"
            at = f"{like}_{unlike}_said_{claim}_{name}"
            printed.value(at, f"{rate} of {len(bounded) / len(draws):.2f}")
    printed.write(args.results)


FIELDS = ("ids", "score", "examples", "inside", "to_keep")

if __name__ == "__main__":
    main()
