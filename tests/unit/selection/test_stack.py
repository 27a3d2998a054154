"""The default of `mamushi rank`: what separates counts, no leak, calibrated, and as scikit-learn
makes it."""

from typing import Any

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mamushi.selection.crossfit import derive_seed
from mamushi.selection.folds import stratified_folds
from mamushi.selection.pool import Scored
from mamushi.selection.stacking import INNER
from tests.support.worded import check_flip, run, worded


def weights(scored: Scored) -> dict[str, float]:
    """The mean weight of each member over the folds."""
    fits = [fold["weights"] for fold in scored.details["per_fold"]]
    return {name: float(np.mean([fit[name] for fit in fits])) for name in fits[0]}


def test_a_label_has_no_part_in_its_own_score(monkeypatch: pytest.MonkeyPatch) -> None:
    check_flip("stack", worded(120), monkeypatch, folds=3)


def test_what_tells_the_domains_apart_has_the_weight() -> None:
    by_words = run("stack", worded(300, words=2, last=0), folds=3)
    by_vectors = run("stack", worded(300, words=0, last=3), folds=3)
    assert weights(by_words)["words"] + weights(by_words)["characters"] > 1
    assert abs(weights(by_words)["embedding"]) < 0.2
    assert weights(by_vectors)["embedding"] > 1
    rest = abs(weights(by_vectors)["words"]) + abs(weights(by_vectors)["characters"])
    assert rest < weights(by_vectors)["embedding"] / 2
    assert min(s.details["auc"] for s in (by_words, by_vectors)) > 0.9


def test_it_is_scikit_learns_stack() -> None:
    """By vectorizers without hashing and another solver, on the same folds."""
    pool, folds = worded(150, words=1, last=1), 3
    scored = run("stack", pool, folds=folds)
    texts, y, x = np.asarray(pool.texts), pool.forget, pool.embeddings.astype(np.float64)
    assert scored.fold is not None
    counted = [
        {"analyzer": "word", "ngram_range": (1, 2), "token_pattern": r"(?u)\b\w+\b"},
        {"analyzer": "char_wb", "ngram_range": (3, 5)},
    ]

    def fitted(variance: float) -> Any:
        return LogisticRegression(C=variance, solver="newton-cg", class_weight="balanced", tol=1e-8)

    for i in range(folds):
        held, train = np.flatnonzero(scored.fold == i), np.flatnonzero(scored.fold != i)
        parts = [x]
        for options in counted:
            weigh = TfidfVectorizer(sublinear_tf=True, **options).fit(texts[train])
            parts.append(weigh.transform(texts))
        models = [make_pipeline(StandardScaler(), fitted(10 / x.shape[1])), fitted(30), fitted(30)]
        inner = stratified_folds(y[train], folds, derive_seed(derive_seed(0, i), INNER), None)
        z, new = np.zeros((len(train), 3)), np.zeros((len(held), 3))
        for m, (model, part) in enumerate(zip(models, parts, strict=True)):
            for j in range(folds):
                model.fit(part[train[inner != j]], y[train[inner != j]])
                z[inner == j, m] = model.decision_function(part[train[inner == j]])
            new[:, m] = model.fit(part[train], y[train]).decision_function(part[held])
        stack = make_pipeline(StandardScaler(), fitted(1)).fit(z, y[train])
        assert scored.scores[held] == pytest.approx(stack.decision_function(new), abs=0.1)
