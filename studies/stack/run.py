"""How good the default of `mamushi rank` is beside networks, words and plain scikit-learn.

    snakemake --configfile studies/stack/config.yaml \\
        results/runs/{jigsaw,autos,guns,hardware}/smollm2/seed0/{embeddings,layers}.parquet
    python -m studies.stack.run results

Per corpus and ranking: the mean AUC and average precision over `--seeds` of folds (`auto`: one),
and both of the mean scores less those of `plain`, scikit-learn's own stack of the same three parts,
with a 95% interval for the sample of texts: by DeLong, and by resamples of groups.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.preprocessing import StandardScaler

from mamushi.running.threads import one_for_arithmetic
from mamushi.selection.metrics import auc, auc_difference
from mamushi.selection.pool import Pool, read_pool
from mamushi.selection.word_vectors import components_of_words
from studies.lib.report import Report, arguments
from studies.rankings.run import scores, standard

Scores = np.ndarray[Any, np.dtype[np.float64]]
CORPORA = ("jigsaw", "autos", "guns", "hardware")
PLAIN, RESAMPLES = "plain", 500
WORDS = {"analyzer": "word", "sublinear_tf": True}
CHARACTERS = {"analyzer": "char_wb", "ngram_range": (3, 5), "sublinear_tf": True}


def sklearn(pool: Pool, seed: int, *, vectors: bool) -> Scores:
    """Held-out logits (n,) of scikit-learn's logistic regression on tf-idf of words, and with
    ``vectors`` on these and on characters beside it, each part of a text of length 1."""
    texts, y = np.asarray(pool.texts), pool.forget
    groups = np.arange(len(y)) if pool.groups is None else pool.groups
    results = np.empty(len(y))
    folds = StratifiedGroupKFold(5, shuffle=True, random_state=seed)
    for train, held in folds.split(texts, y, groups):
        parts = []
        for options in (WORDS, CHARACTERS)[: 2 if vectors else 1]:
            weigh = TfidfVectorizer(**options).fit(texts[train])
            parts.append(weigh.transform(texts))
        if vectors:
            x = StandardScaler().fit(pool.embeddings[train]).transform(pool.embeddings)
            parts.append(sparse.csr_matrix(x / np.sqrt(x.shape[1])))
        x = sparse.hstack(parts, format="csr")
        model = LogisticRegression(C=10, class_weight="balanced", max_iter=5000)
        results[held] = model.fit(x[train], y[train]).decision_function(x[held])
    return results


def rankings(pool: Pool) -> dict[str, Callable[[int], Scores]]:
    """Return by name what scores a pool with a seed, the reference first."""
    texts = np.asarray(pool.texts).tolist()
    without = replace(pool, embeddings=components_of_words(texts, 128), layers={})
    return {
        PLAIN: lambda seed: sklearn(pool, seed, vectors=True),
        "tfidf": lambda seed: sklearn(pool, seed, vectors=False),
        "stack": lambda seed: scores(pool, "stack", {}, seed),
        "words_alone": lambda seed: scores(without, "stack", {}, seed),
        "lexical": lambda seed: scores(pool, "lexical", {}, seed),
        "mamushi": lambda seed: scores(pool, "mamushi", {"seeds_averaged": 10}, seed),
        "auto": lambda seed: scores(pool, "auto", {"repeats": 1}, seed),
    }


def precision_difference(first: Scores, second: Scores, pool: Pool) -> tuple[float, float, float]:
    """Return the average precision of the ``first`` scores less that of the ``second`` ones, with
    the 2.5% and 97.5% quantiles over resamples of groups."""
    groups = np.arange(len(pool.ids)) if pool.groups is None else pool.groups
    members = [np.flatnonzero(groups == code) for code in np.unique(groups)]
    rng = np.random.default_rng(0)

    def difference(rows: Any) -> float:
        y = pool.forget[rows]
        return float(
            average_precision_score(y, first[rows]) - average_precision_score(y, second[rows])
        )

    draws = rng.integers(0, len(members), (RESAMPLES, len(members)))
    drawn = [difference(np.concatenate([members[i] for i in draw])) for draw in draws]
    low, high = np.quantile(drawn, [0.025, 0.975])
    return difference(slice(None)), float(low), float(high)


def compare(
    report: Report, corpus: str, pool: Pool, seeds: int, names: Collection[str] = ()
) -> None:
    """Report what each ranking of a corpus is worth, or those of the ``names``."""
    report.value(f"{corpus}_texts", len(pool.ids))
    reference: Scores | None = None
    for name, score in rankings(pool).items():
        if names and name not in names:
            continue
        start = time.process_time()
        # One of `auto` takes as long as all others together.
        drawn = [score(seed) for seed in range(1 if name == "auto" else seeds)]
        seconds = (time.process_time() - start) / len(drawn)
        mean = np.mean([standard(scored) for scored in drawn], axis=0)
        reference = mean if reference is None else reference
        areas = [auc(scored, pool.forget) for scored in drawn]
        precise = [average_precision_score(pool.forget, scored) for scored in drawn]
        report.value(f"{corpus}_{name}_auc", float(np.mean(areas)))
        report.value(f"{corpus}_{name}_precision", float(np.mean(precise)))
        less = auc_difference(mean, reference, pool.forget, pool.groups)
        for end, value in zip(("", "_low", "_high"), less, strict=True):
            report.value(f"{corpus}_{name}_less_{PLAIN}{end}", value)
        less = precision_difference(mean, reference, pool)
        for end, value in zip(("", "_low", "_high"), less, strict=True):
            report.value(f"{corpus}_{name}_precision_less_{PLAIN}{end}", value)
        report.value(f"{corpus}_{name}_cpu_seconds", seconds)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("root", type=Path, help="the folder with the results of the configuration")
    parser.add_argument("--seeds", type=int, default=3, help="of folds and networks")
    parser.add_argument("--corpora", nargs="+", choices=CORPORA, default=CORPORA)
    args = parser.parse_args()
    one_for_arithmetic()
    report = Report("stack", threads=1)
    for corpus in args.corpora:
        cell = args.root / "runs" / corpus / "smollm2" / "seed0"
        examples = args.root / "data" / corpus / "examples.parquet"
        pool = read_pool(
            cell / "embeddings.parquet", examples, layers=cell / "layers.parquet", texts=True
        )
        compare(report, corpus, pool, args.seeds)
    print(report.write(args.results))


if __name__ == "__main__":
    main()
