"""What answers about clusters that the examples may not cover give the next ranking.

    python -m studies.unlabelled.uncovered 20news-bydate.tar.gz

The domain has two topics, and all examples are of the first: two newsgroups of politics or sport
among posts of others, or the two kinds of the worlds of `fair.py`. The truth answers for three
texts of ten clusters, as `mamushi audit --uncovered` asks (``clusters``, and once more on the next
ranking, ``twice``), or for as many texts: the next below the likely ones (``next``), or any below
them at random (``chance``). Reported is the recall of a list of as many texts as the corpus has of
the domain: of both topics, and of each; the second one less than ``before``, over draws with a 95%
interval (Student's t). Posts are ranked by words and the leading components of these.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from itertools import chain

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.stats import t as student
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.linear_model import LogisticRegression

from mamushi.running.threads import one_for_arithmetic
from mamushi.selection.word_vectors import components_of_words
from mamushi_extras.unlabelled.corpus import Corpus
from mamushi_extras.unlabelled.uncovered import ASKED, SHOWN, in_between, uncovered_clusters
from studies.lib.report import Report, arguments
from studies.unlabelled import fair
from studies.unlabelled.groups import posts
from studies.unlabelled.positive import Doubles, Mask, Source, components, cross_fit, logistic

PAIRS = {
    "politics": ("talk.politics.guns", "talk.politics.mideast"),
    "sport": ("rec.sport.hockey", "rec.sport.baseball"),
}
EXAMPLES, EACH, REST = 100, 150, 1200
"""Examples, texts of each topic in the corpus and texts of the rest."""
WORLD = "worlds"
Drawn = tuple[Source, Mask, Mask, Mask]
"""Texts, which of them are examples, and which of the corpus are of the first and second topic."""
Pick = Callable[[pa.Table, int, Source, np.random.Generator], list[str]]


class Newsgroups:
    """Posts of the training part, with their groups, components and words."""

    def __init__(self, archive: str) -> None:
        used = [*chain(*PAIRS.values())]
        self.texts, groups = posts(archive)
        self.groups = np.array(groups)
        politics = np.char.startswith(self.groups, "talk.politics")
        self.rest = np.flatnonzero(~politics & ~np.isin(self.groups, used))
        self.words = CountVectorizer(min_df=3).fit_transform(self.texts).tocsr()
        self.x = components(components_of_words(self.texts, 128).astype(np.float64))

    def draw(self, pair: str, seed: int) -> Drawn:
        """Draw a corpus with examples of the first topic of a pair."""
        rng = np.random.default_rng([seed, EXAMPLES])
        first, second = (
            rng.permutation(np.flatnonzero(self.groups == group)) for group in PAIRS[pair]
        )
        rest = rng.permutation(self.rest)[:REST]
        rows = np.concatenate([first[: EXAMPLES + EACH], second[:EACH], rest])
        at = np.arange(len(rows))
        examples, ends = at < EXAMPLES, (EXAMPLES + EACH, EXAMPLES + 2 * EACH)
        source = Source(self.x[rows], examples, self.words[rows])
        return source, examples, ~examples & (at < ends[0]), (at >= ends[0]) & (at < ends[1])


def world(seed: int) -> Drawn:
    """Draw a world of `fair.py` with examples of its first kind."""
    rng = np.random.default_rng([seed, EXAMPLES])
    kinds = ("first", "first", "second", "rest")
    sizes = (EXAMPLES, EACH, EACH, REST)
    x = np.concatenate([fair.drawn(rng, n, kind) for n, kind in zip(sizes, kinds, strict=True)])
    part = np.repeat(np.arange(4), sizes)
    return Source(x, part == 0, None), part == 0, part == 1, part == 2


def of_clusters(
    ranking: pa.Table, likely: int, source: Source, rng: np.random.Generator
) -> list[str]:
    """Return the ids that `mamushi audit --uncovered` asks about."""
    between = in_between(ranking, likely)
    ids = np.array(names(len(source.x)), dtype=object)
    return [*chain(*uncovered_clusters(between, ids, source.x)["ids"].to_pylist())]


def next_below(
    ranking: pa.Table, likely: int, source: Source, rng: np.random.Generator
) -> list[str]:
    """Return as many ids, the next below those that are likely."""
    return in_between(ranking, likely)["id"].to_pylist()[: SHOWN * ASKED]


def by_chance(
    ranking: pa.Table, likely: int, source: Source, rng: np.random.Generator
) -> list[str]:
    """Return as many ids of those below at random."""
    return rng.permutation(in_between(ranking, likely)["id"].to_pylist())[: SHOWN * ASKED].tolist()


PICKS: dict[str, Pick] = {"clusters": of_clusters, "next": next_below, "chance": by_chance}


def names(n: int) -> list[str]:
    """Return an id of each text."""
    return [f"{row:06}" for row in range(n)]


def scored(source: Source, label: Mask, seed: int) -> Doubles:
    """Return scores (n,): the sum of both regressions of `positive.py`, that on words by a solver
    that takes a fifth of the time."""
    logits = [logistic(source.x, label, seed)]
    if (words := source.words) is not None:

        def fit(train: Mask) -> Callable[[Mask], Doubles]:
            weigh = TfidfTransformer(sublinear_tf=True).fit(words[train])
            model = LogisticRegression(class_weight="balanced", solver="liblinear")
            model.fit(weigh.transform(words[train]), label[train])
            return lambda held: model.decision_function(weigh.transform(words[held]))

        logits.append(cross_fit(label, fit, seed))
    return np.sum([(values - values.mean()) / values.std() for values in logits], axis=0)


def answered(
    source: Source, yes: Mask, no: Mask, examples: Mask, seed: int
) -> tuple[Corpus, pa.Table]:
    """Return a corpus with what was answered about it, and its table ``posterior``."""
    n = len(examples)
    score = scored(source, examples | yes, seed)
    ids = np.array(names(n), dtype=object)
    corpus = Corpus(ids, score, examples | yes, ~examples & ~no, no, answered=yes | no)
    domain = np.where(corpus.examples, "forget", "retain")
    return corpus, corpus.table(pa.table({"domain": domain, "fold": pa.nulls(n, pa.int16())}))


def recalls(corpus: Corpus, first: Mask, second: Mask) -> Doubles:
    """Return what a list of as many texts as there are of the domain has of it and its topics."""
    listed = np.zeros(len(first), dtype=bool)
    listed[corpus.order[: (first | second).sum()]] = True
    return np.array([listed[of].mean() for of in (first | second, first, second)])


def of_draw(drawn: Drawn, seed: int) -> dict[str, Doubles]:
    """Return the recalls of each way to ask, and how many answers were a yes."""
    source, examples, first, second = drawn
    nobody = np.zeros(len(examples), dtype=bool)
    corpus, ranking = answered(source, nobody, nobody, examples, seed)
    results = {"before": recalls(corpus, first, second)}
    rng = np.random.default_rng(seed)

    def answer(pick: Pick, yes: Mask, no: Mask, from_: tuple[Corpus, pa.Table]) -> None:
        chosen = np.isin(names(len(yes)), pick(from_[1], from_[0].likely, source, rng))
        yes |= chosen & (first | second)
        no |= chosen & ~(first | second)

    for name, pick in PICKS.items():
        yes, no = nobody.copy(), nobody.copy()
        answer(pick, yes, no, (corpus, ranking))
        second_round = answered(source, yes, no, examples, seed)
        results[name] = recalls(second_round[0], first, second)
        results[f"{name}_yes"] = np.array([yes.sum(), (yes & first).sum(), (yes & second).sum()])
        if name == "clusters":
            answer(pick, yes, no, second_round)
            results["twice"] = recalls(answered(source, yes, no, examples, seed)[0], first, second)
    return results


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("archive")
    parser.add_argument("--draws", type=int, default=25)
    args = parser.parse_args()
    one_for_arithmetic()
    report = Report("uncovered", threads=1)
    newsgroups = Newsgroups(args.archive)
    for at in (WORLD, *PAIRS):
        values: dict[str, list[Doubles]] = defaultdict(list)
        for seed in range(args.draws):
            drawn = world(seed) if at == WORLD else newsgroups.draw(at, seed)
            for name, recall in of_draw(drawn, seed).items():
                values[name].append(recall)
        of_world(report, at, {name: np.array(rows) for name, rows in values.items()})
    report.write(args.results)


def of_world(report: Report, at: str, values: dict[str, NDArray[np.float64]]) -> None:
    """Report the recalls (draws, 3) by how was asked, and how much more of the second topic."""
    before = values["before"][:, 2]
    for name, rows in values.items():
        for topic, mean in zip(("both", "first", "second"), rows.mean(axis=0), strict=True):
            report.value(f"{at}_{name}_{topic}", float(mean))
        if name != "before" and not name.endswith("_yes"):
            gain = rows[:, 2] - before
            half = student.ppf(0.975, len(gain) - 1) * gain.std(ddof=1) / np.sqrt(len(gain))
            ends = (("", 0.0), ("_low", -half), ("_high", half))
            for end, width in ends:
                report.value(f"{at}_{name}_second_more{end}", float(gain.mean() + width))


if __name__ == "__main__":
    main()
