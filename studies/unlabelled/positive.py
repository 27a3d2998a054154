"""A corpus that nobody labelled, ranked from examples: how good, and which of its numbers hold.

    python -m studies.unlabelled.positive results --model smollm2_frozen --datasets jigsaw sport

From each dataset are drawn examples of the forget domain, a corpus with the domain mixed in at a
known share, in percent in the names of the values, and 100 retain texts that are wanted. Two
cross-fitted logistic regressions score examples against corpus, on 100 principal components and on
the tf-idf of words; `ours` is the sum of both, each of standard deviation 1. `auc` and `ap` are of
the corpus by hidden labels. Beside it: the same with all labels; `vectors` and `tf_idf` alone; word
counts, and nnPU (Kiryo et al. 2017) with a linear model on the components and the true share.
`*_covers` are shares of draws in which an interval holds what is true, `*_width` median widths.
"""

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score

from mamushi.io import paths, schemas
from mamushi.io.domains import FORGET, INFERENCE
from mamushi.io.tables import read_table
from mamushi.selection.folds import stratified_folds
from mamushi_extras.unlabelled.corpus import Corpus
from mamushi_extras.unlabelled.share import DomainShare, share, upper_bound
from studies.lib.report import Report, arguments

Doubles = NDArray[np.float64]
Mask = NDArray[np.bool_]
Interval = tuple[float, float]

SIZES, SHARES = (50, 100), (0.01, 0.05, 0.2)
WANTED, WIDTH, FOLDS = 100, 100, 5
ALPHA = 1.0
"""L2 penalty on the mean loss, that of the command for such a corpus."""
CUTS = (0.02, 0.05, 0.1, 0.2)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("root", nargs="?", type=Path, help="the run's folder of results")
    parser.add_argument("--model")
    parser.add_argument("--datasets", nargs="*", default=[])
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--compared", type=int, default=20, help="draws for the other rankings")
    args = parser.parse_args()
    report = Report("positive", threads=1)
    for dataset in args.datasets:
        source = read(args.root, dataset, args.model)
        for n1, a in product(SIZES, SHARES):
            of_setting(report, f"{dataset}_{n1}_{a:.0%}", source, n1, a, args)
    report.write(args.results)


def of_shares(report: Report, name: str, a: float, drawn: list[tuple[Doubles, ...]]) -> None:
    """Report coverage and width of the share's intervals over draws of scores: of examples, of a
    corpus, of wanted texts."""
    shares: list[DomainShare] = [share(*scores) for scores in drawn]
    intervals: dict[str, list[Interval]] = {
        "bound": [(0.0, upper_bound(examples, rest)) for examples, rest, _ in drawn],
        "wanted": [(estimate.low or 0.0, estimate.high) for estimate in shares],
    }
    for key, ends in intervals.items():
        low, high = np.array(ends).T
        report.value(f"{name}_{key}_covers", float(np.mean((low <= a) & (a <= high))))
        report.value(f"{name}_{key}_low_covers", float(np.mean(low <= a)))
        report.value(f"{name}_{key}_width", float(np.median(high - low)))


class Source:
    """Texts of two domains: components (n, WIDTH), which are forget, and their words, if any."""

    def __init__(self, x: Doubles, forget: Mask, words: sparse.csr_matrix | None) -> None:
        self.x, self.forget, self.words = x, forget, words

    def draw(self, seed: int, n1: int, a: float) -> tuple[NDArray[np.int64], ...]:
        """Return the rows of examples, of a corpus of all retain texts that are left, and of wanted
        texts."""
        rng = np.random.default_rng([seed, n1])
        forget, retain = (
            rng.permutation(np.flatnonzero(self.forget == of)) for of in (True, False)
        )
        here = round(a * (len(retain) - WANTED) / (1 - a))
        return (
            forget[:n1],
            np.concatenate([forget[n1 : n1 + here], retain[WANTED:]]),
            retain[:WANTED],
        )


def components(x: Doubles) -> Doubles:
    """Return the first principal components (n, WIDTH) of standardised embeddings."""
    x = (x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-6)
    u, s, _ = np.linalg.svd(x, full_matrices=False)
    return np.asarray(u[:, :WIDTH] * s[:WIDTH])


def read(root: Path, dataset: str, model: str) -> Source:
    cell = {"dataset": dataset, "model": model, "seed": 0}
    table = read_table(paths.under(root, paths.EMBEDDINGS, **cell), schemas.EMBEDDINGS)
    x = np.stack(table["embedding"].to_numpy()).astype(np.float64)
    examples = read_table(paths.under(root, paths.EXAMPLES, dataset=dataset), schemas.EXAMPLES)
    rows = {row["id"]: row for row in examples.to_pylist() if row["section"] == INFERENCE}
    texts = [rows[name]["text"] for name in table["id"].to_pylist()]
    forget = np.array([domain == FORGET for domain in table["domain"].to_pylist()])
    return Source(components(x), forget, CountVectorizer().fit_transform(texts).tocsr())


def cross_fit(label: Mask, fit: Callable[[Mask], Callable[[Mask], Doubles]], seed: int) -> Doubles:
    """Return out-of-fold scores (n,): ``fit`` gets the rows to learn from."""
    fold, score = stratified_folds(label, FOLDS, seed), np.empty(len(label))
    for number in range(FOLDS):
        score[fold == number] = fit(fold != number)(fold == number)
    return score


def logistic(x: Doubles, label: Mask, seed: int, alpha: float = ALPHA) -> Doubles:
    """Logits of a logistic regression with balanced classes."""

    def fit(train: Mask) -> Callable[[Mask], Doubles]:
        settings = {"C": 1 / (alpha * train.sum()), "class_weight": "balanced"}
        model = LogisticRegression(**settings, solver="newton-cholesky").fit(x[train], label[train])
        return lambda held: model.decision_function(x[held])

    return cross_fit(label, fit, seed)


def tf_idf(words: sparse.csr_matrix, label: Mask, seed: int) -> Doubles:
    """Logits of a logistic regression on the tf-idf of words, with balanced classes."""

    def fit(train: Mask) -> Callable[[Mask], Doubles]:
        weigh = TfidfTransformer(sublinear_tf=True).fit(words[train])
        model = LogisticRegression(class_weight="balanced", max_iter=300)
        model.fit(weigh.transform(words[train]), label[train])
        return lambda held: model.decision_function(weigh.transform(words[held]))

    return cross_fit(label, fit, seed)


def both(source: Source, rows: NDArray[np.int64], label: Mask, seed: int) -> Doubles:
    """The sum of both, as `mamushi_words` has it; without words the first alone."""
    logits = [logistic(source.x[rows], label, seed)]
    if source.words is not None:
        logits.append(tf_idf(source.words[rows], label, seed))
    return np.sum([(values - values.mean()) / values.std() for values in logits], axis=0)


def unigrams(words: sparse.csr_matrix, label: Mask, seed: int) -> Doubles:
    """The mean over a text's words of log p1(w)/pC(w), as ``token_unigram`` has it."""

    def fit(train: Mask) -> Callable[[Mask], Doubles]:
        inside, outside = (
            np.asarray(words[train & of].sum(axis=0))[0] + 0.5 for of in (label, ~label)
        )
        ratio = np.log(inside / inside.sum()) - np.log(outside / outside.sum())
        return lambda held: words[held] @ ratio / np.maximum(words[held].sum(axis=1).A1, 1)

    return cross_fit(label, fit, seed)


def non_negative(x: Doubles, label: Mask, seed: int, a: float) -> Doubles:
    """nnPU with the sigmoid loss and a linear model, by gradient descent with momentum."""

    def fit(train: Mask) -> Callable[[Mask], Doubles]:
        scale = float(x[train].std())
        examples, rest = x[train & label] / scale, x[train & ~label] / scale
        w, bias, step = np.zeros(x.shape[1]), 0.0, np.zeros(x.shape[1] + 1)
        for _ in range(300):
            s1, s_c = (1 / (1 + np.exp(-(x_ @ w + bias))) for x_ in (examples, rest))
            g1, g_c = s1 * (1 - s1) / len(s1), s_c * (1 - s_c) / len(s_c)
            pull = np.r_[g1 @ examples, g1.sum()]
            push = np.r_[g_c @ rest, g_c.sum()]
            negative = s_c.mean() - a * s1.mean()
            gradient = -a * pull + (push - a * pull if negative >= 0 else a * pull - push)
            step = 0.9 * step - 0.5 * (gradient + np.r_[1e-3 * w, 0])
            w, bias = w + step[:-1], bias + step[-1]
        return lambda held: x[held] @ w / scale + bias

    return cross_fit(label, fit, seed)


def rankings(source: Source, rows: NDArray[np.int64], label: Mask, a: float, seed: int) -> Any:
    """Yield name and scores of rankings beside ours, of the ``rows`` of which ``label`` are
    examples."""
    x, hidden = source.x[rows], source.forget[rows]
    yield "vectors", logistic(x, label, seed)
    yield "all_labels", both(source, rows, hidden, seed)
    yield "nnpu", non_negative(x, label, seed, a)
    if source.words is not None:
        words = source.words[rows]
        yield "tf_idf", tf_idf(words, label, seed)
        yield "unigrams", unigrams(words, label, seed)


def of_setting(report: Report, at: str, source: Source, n1: int, a: float, args: Any) -> None:
    ranked: dict[str, list[Interval]] = {}
    held: dict[str, list[tuple[float, ...]]] = {}
    drawn = []
    for seed in range(args.draws):
        examples, corpus, kept = source.draw(seed, n1, a)
        rows = np.concatenate([examples, corpus, kept])
        label, hidden = np.arange(len(rows)) < len(examples), source.forget[rows]
        last = np.arange(len(rows)) >= len(rows) - len(kept)
        inside = ~label & ~last
        score = both(source, rows, label, seed)
        drawn.append((score[label], score[inside], score[last]))
        beside = rankings(source, rows, label, a, seed) if seed < args.compared else ()
        for key, values in (("ours", score), *beside):
            measured = (
                roc_auc_score(hidden[inside], values[inside]),
                average_precision_score(hidden[inside], values[inside]),
            )
            ranked.setdefault(key, []).append(measured)
        ids = np.array([f"{row:06}" for row in range(len(rows))], dtype=object)
        alone = Corpus(ids[~last], score[~last], label[~last], inside[~last], last[~last])
        with_wanted = Corpus(ids, score, label, inside, last)
        for suffix, ranked_corpus in (("", alone), ("_wanted", with_wanted)):
            for key, values in lists(ranked_corpus, hidden, suffix):
                held.setdefault(key, []).append(values)
    for key, several in ranked.items():
        auc, precision = np.mean(several, axis=0)
        report.value(f"{at}_{key}_auc", float(auc))
        report.value(f"{at}_{key}_ap", float(precision))
    of_shares(report, at, float(source.forget[corpus].mean()), drawn)
    for key, several in held.items():
        true, low, high, expected = np.array(several).T
        report.value(f"{at}_{key}", float(np.mean(true)))
        report.value(f"{at}_{key}_expected", float(np.mean(expected)))
        report.value(f"{at}_{key}_covers", float(np.mean((low <= true) & (true <= high))))
        report.value(f"{at}_{key}_width", float(np.median(high - low)))


def lists(corpus: Corpus, hidden: Mask, suffix: str) -> Iterator[tuple[str, tuple[float, ...]]]:
    """Yield what each list holds: the truth, the ends of its interval and what is expected."""
    n = len(corpus.order)
    sizes = {f"{cut:.0%}": round(cut * n) for cut in CUTS}
    for name, k in (*sizes.items(), ("likely", corpus.likely)):
        if k == 0:
            continue
        precision, recall = corpus.list_rates(k)
        caught = hidden[corpus.order[:k]].sum()
        true_of = {"precision": caught / k, "recall": caught / hidden[corpus.order].sum()}
        for key, stated in (("precision", precision), ("recall", recall)):
            ends = (stated["low"] or 0.0, stated["high"], stated["estimate"])
            yield f"{name}{suffix}_{key}", (float(true_of[key]), *map(float, ends))


if __name__ == "__main__":
    main()
