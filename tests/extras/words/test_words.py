"""Rankings by words, and of a stack, against scikit-learn's pipelines."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, normalize

from mamushi.registry import plugin
from mamushi.selection import crossfit
from mamushi.selection.crossfit import derive_seed
from mamushi.selection.folds import stratified_folds
from mamushi.selection.pool import Pool, Scored
from mamushi_extras.words.estimators import INNER
from tests.support.worded import worded


def run(name: str, pool: Pool, seed: int = 0, **settings: Any) -> Scored:
    """The scores of a selector with its defaults but for ``settings``."""
    found = {**plugin("selector", name).defaults, **settings}
    scored = plugin("selector", name).code.score(pool, found, seed)
    assert isinstance(scored, Scored)
    return scored


@pytest.fixture(scope="module")
def pool() -> Pool:
    return worded(120)


def folds(scored: Scored) -> list[np.ndarray[Any, Any]]:
    assert scored.fold is not None
    return [scored.fold == i for i in range(int(scored.fold.max()) + 1)]


def test_lexical_is_scikit_learns_vectorizers(pool: Pool) -> None:
    """Without hashing: of so few n-grams hardly two share one of 2^20 columns."""
    found = run("lexical", pool)
    texts = np.asarray(pool.texts)
    for held in folds(found):
        parts = []
        for analyzer, lengths in (("word", (1, 2)), ("char_wb", (3, 5))):
            weigh = TfidfVectorizer(
                analyzer=analyzer,
                ngram_range=lengths,
                sublinear_tf=True,
                token_pattern=r"(?u)\b\w+\b",
            ).fit(texts[~held])
            parts.append([weigh.transform(texts[rows]) for rows in (~held, held)])
        x, new = (normalize(sparse.hstack(part)) for part in zip(*parts, strict=True))
        model = LogisticRegression(C=30, solver="newton-cg", class_weight="balanced", tol=1e-8)
        wanted = model.fit(x, pool.forget[~held]).decision_function(new)
        assert found.scores[held] == pytest.approx(wanted, abs=2e-2)


def test_words_and_embeddings_are_the_sum_of_scikit_learns_pipelines(pool: Pool) -> None:
    found = run("mamushi_words", pool)
    texts, x = np.asarray(pool.texts), pool.embeddings.astype(np.float64)
    for held in folds(found):
        how = {"class_weight": "balanced", "solver": "newton-cg", "tol": 1e-9}
        models = (
            (make_pipeline(StandardScaler(), LogisticRegression(C=1 / (~held).sum(), **how)), x),
            (make_pipeline(TfidfVectorizer(sublinear_tf=True), LogisticRegression(**how)), texts),
        )
        logits = [
            m.fit(of[~held], pool.forget[~held]).decision_function(of[held]) for m, of in models
        ]
        wanted = sum((one - one.mean()) / one.std() for one in logits)
        assert found.scores[held] == pytest.approx(wanted, abs=5e-3)


def test_behind_a_screen_the_words_are_what_it_says_of_them(pool: Pool) -> None:
    margin = np.random.default_rng(1).normal(size=len(pool.ids))
    found = run("mamushi_words", replace(pool, texts=None, columns={"words": margin}))
    vectors = run("mamushi_lr", pool, solver="newton-cholesky", alpha=1.0).scores
    for held in folds(found):
        wanted = sum((one[held] - one[held].mean()) / one[held].std() for one in (vectors, margin))
        assert found.scores[held] == pytest.approx(wanted)


@pytest.mark.parametrize("name", ["lexical", "mamushi_words", "stack"])
def test_a_label_has_no_part_in_its_own_score(
    name: str, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scores of a fold, with all labels of the fold turned around: the same bits.

    The folds are held: which of them a text is in is drawn from its domain.
    """
    before, drawn = run(name, pool, folds=3), crossfit.stratified_folds
    fold = before.fold
    assert fold is not None
    monkeypatch.setattr(
        crossfit,
        "stratified_folds",
        lambda forget, *how: fold if len(forget) == len(fold) else drawn(forget, *how),
    )
    held = fold == 0
    after = run(name, replace(pool, forget=pool.forget ^ held), folds=3)
    assert np.array_equal(after.scores[held], before.scores[held])
    assert not np.array_equal(after.scores[~held], before.scores[~held])


def test_stack_is_scikit_learns() -> None:
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
