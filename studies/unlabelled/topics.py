"""Can examples tell by themselves that they are of several topics?

    python -m studies.unlabelled.topics 20news-bydate.tar.gz

Two ways to say so, each at 5%, on the first five principal components of 100 examples:
``likelihood``, by which two Gaussians explain held-out examples better than one does (three folds,
paired t test), and ``silhouette``, by which two clusters are better apart than those of samples of
one Gaussian with the same covariance. Reported is the share of the draws that each calls of several
topics. In worlds one topic is Gaussian, skewed or heavy-tailed, and two are 2, 3 or 4 standard
deviations apart, or 4 where one has a tenth. Posts are of one newsgroup, or two, also a tenth.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.stats import ttest_1samp
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import silhouette_score
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import KFold

from mamushi.running.threads import one_for_arithmetic
from studies.lib.report import Report, arguments
from studies.unlabelled.positive import Doubles
from studies.unlabelled.uncovered import EXAMPLES, PAIRS, Newsgroups

WIDTH, COMPONENTS, LEVEL, FOLDS = 32, 5, 0.05, 3
APART = {"two_2sd": (2.0, 0.5), "two_3sd": (3.0, 0.5), "two_4sd": (4.0, 0.5), "rare": (4.0, 0.1)}
"""How far two topics of a world are apart, and the share of the second."""
OTHERS = ("rec.autos", "sci.space", "comp.graphics", "soc.religion.christian")
"""Newsgroups that are one topic, beside the first of each pair."""


def by_likelihood(x: Doubles) -> bool:
    """Tell whether two Gaussians explain held-out examples (n, d) better than one."""
    gain = np.empty(len(x))
    for train, held in KFold(FOLDS).split(x):
        single, double = (
            GaussianMixture(count, covariance_type="diag", random_state=0)
            .fit(x[train])
            .score_samples(x[held])
            for count in (1, 2)
        )
        gain[held] = double - single
    return bool(ttest_1samp(gain, 0, alternative="greater").pvalue < LEVEL)


def silhouette(x: Doubles) -> float:
    """Return how well two clusters of examples (n, d) are apart."""
    return float(silhouette_score(x, KMeans(2, n_init=1, random_state=0).fit_predict(x)))


def by_silhouette(x: Doubles, rng: np.random.Generator) -> bool:
    """Tell whether two clusters are better apart than those of 19 samples of one Gaussian."""
    here, samples = silhouette(x), round(1 / LEVEL) - 1
    return all(silhouette(rng.normal(size=x.shape) * x.std(axis=0)) < here for _ in range(samples))


def worlds(rng: np.random.Generator) -> Iterator[tuple[str, Doubles]]:
    """Yield examples (n, width) of each world, by its name."""
    scale = 1 / np.sqrt(1 + np.arange(WIDTH))
    normal = rng.normal(size=(EXAMPLES, WIDTH)) * scale
    yield "one_gaussian", normal
    yield "one_skewed", (rng.exponential(size=(EXAMPLES, WIDTH)) - 1) * scale
    yield "one_heavy", normal * np.sqrt(4 / rng.chisquare(4, (EXAMPLES, 1)))
    for name, (apart, share) in APART.items():
        second = np.arange(EXAMPLES) < share * EXAMPLES
        yield name, normal + apart * np.outer(second, np.arange(WIDTH) == 0)


def newsgroups(posts: Newsgroups, rng: np.random.Generator) -> Iterator[tuple[str, Doubles]]:
    """Yield components (n, width) of examples out of newsgroups, by which they are of."""

    def some(group: str, count: int) -> Doubles:
        rows = np.flatnonzero(posts.groups == group)
        return np.asarray(posts.x[rng.permutation(rows)[:count]])

    for group in (*(first for first, _ in PAIRS.values()), *OTHERS):
        yield f"one_{group}", some(group, EXAMPLES)
    for pair, (first, second) in PAIRS.items():
        for name, rare in (("two", EXAMPLES // 2), ("rare", EXAMPLES // 10)):
            yield (
                f"{name}_{pair}",
                np.concatenate([some(first, EXAMPLES - rare), some(second, rare)]),
            )


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("archive", type=Path)
    parser.add_argument("--draws", type=int, default=100)
    args = parser.parse_args()
    one_for_arithmetic()
    report = Report("topics", threads=1)
    posts = Newsgroups(str(args.archive))
    verdicts: dict[str, list[tuple[bool, bool]]] = {}
    for seed in range(args.draws):
        rng = np.random.default_rng(seed)
        for source in (worlds(rng), newsgroups(posts, rng)):
            for name, examples in source:
                x = PCA(COMPONENTS, random_state=0).fit_transform(rng.permutation(examples))
                verdicts.setdefault(name, []).append((by_likelihood(x), by_silhouette(x, rng)))
    for name, draws in verdicts.items():
        for test, share in zip(("likelihood", "silhouette"), np.mean(draws, axis=0), strict=True):
            report.value(f"{name}_{test}", float(share))
    report.write(args.results)


if __name__ == "__main__":
    main()
