"""Rankings by layers and by words: against scikit-learn's pipelines, and formulas by hand."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, normalize

from mamushi.errors import UserError
from mamushi.registry import plugin
from mamushi.selection.linear import BITS
from mamushi.selection.pool import Pool, Scored
from mamushi.selection.selectors import bm25, dsir
from tests.support.worded import check_flip, run, worded


@pytest.fixture(scope="module")
def pool() -> Pool:
    return worded(120)


def folds(scored: Scored) -> list[np.ndarray[Any, Any]]:
    assert scored.fold is not None
    return [scored.fold == i for i in range(int(scored.fold.max()) + 1)]


@pytest.mark.parametrize("depths", [[0.5], [0.5, 1]])
def test_linear_is_scikit_learns_pipeline(pool: Pool, depths: list[float]) -> None:
    found = run("linear", pool, depths=depths)
    x = np.hstack([pool.at(depth).astype(np.float64) for depth in depths])
    model = make_pipeline(
        StandardScaler(),
        LogisticRegression(
            C=10 / x.shape[1], solver="newton-cholesky", class_weight="balanced", tol=1e-10
        ),
    )
    for held in folds(found):
        wanted = model.fit(x[~held], pool.forget[~held]).decision_function(x[held])
        assert found.scores[held] == pytest.approx(wanted, abs=5e-3)


def test_a_constant_column_says_nothing(pool: Pool) -> None:
    wide = np.hstack([pool.at(0.5), np.full((len(pool.ids), 1), 7, np.float16)])
    found = run("linear", Pool(pool.ids, pool.forget, wide), depths=[1])
    # Its share of the prior is lost, and nothing else.
    plain = run("linear", Pool(pool.ids, pool.forget, pool.at(0.5)), depths=[1], prior=10 * 6 / 7)
    assert found.scores == pytest.approx(plain.scores, abs=5e-3)


def test_a_depth_without_embeddings_is_a_users_mistake(pool: Pool) -> None:
    with pytest.raises(UserError, match=r"not embedded at depth 0\.3; .*embedding\.depths"):
        run("linear", pool, depths=[0.3])


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


def grams(text: str, longest: int = 1) -> Counter[str]:
    words = text.split()
    return Counter(
        " ".join(words[i : i + n]) for n in range(1, longest + 1) for i in range(len(words) - n + 1)
    )


def test_bm25_is_its_formula(pool: Pool) -> None:
    found = run("bm25", pool)
    assert pool.texts is not None
    bags = [grams(text) for text in pool.texts]
    for held in folds(found):
        train = np.flatnonzero(~held)
        holding = Counter(word for i in train for word in bags[i])
        mean = np.mean([bags[i].total() for i in train])
        query: Counter[str] = sum((bags[i] for i in train if pool.forget[i]), Counter())
        for i in np.flatnonzero(held):
            wanted = 0.0
            for word, f in bags[i].items():
                idf = math.log(1 + (len(train) - holding[word] + 0.5) / (holding[word] + 0.5))
                weight = 1 - bm25.B + bm25.B * bags[i].total() / mean
                saturated = f * (bm25.K1 + 1) / (f + bm25.K1 * weight)
                wanted += query[word] / query.total() * idf * saturated
            assert found.scores[i] == pytest.approx(wanted, rel=1e-5)


def test_dsir_is_its_formula(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dsir, "BUCKETS", 2**BITS)  # so many that no two n-grams share one
    found = run("dsir", pool)
    assert pool.texts is not None
    bags = [grams(text, 2) for text in pool.texts]
    for held in folds(found):
        seen = [
            sum((bags[i] for i in np.flatnonzero(~held & of)), Counter[str]())
            for of in (pool.forget, ~pool.forget)
        ]
        for i in np.flatnonzero(held):
            shares = [
                {gram: (bag[gram] + 1) / (bag.total() + 2**BITS) for gram in bags[i]}
                for bag in seen
            ]
            wanted = sum(
                f * math.log(shares[0][gram] / shares[1][gram]) for gram, f in bags[i].items()
            )
            assert found.scores[i] == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize("name", ["linear", "lexical", "bm25", "dsir"])
def test_a_label_has_no_part_in_its_own_score(
    name: str, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_flip(name, pool, monkeypatch)


@pytest.mark.parametrize("name", ["lexical", "bm25", "dsir"])
def test_words_alone_need_texts(name: str, pool: Pool) -> None:
    assert plugin("selector", name).literals["READS_TEXTS"]
    with pytest.raises(ValueError, match="without texts"):
        run(name, Pool(pool.ids, pool.forget, pool.embeddings))


def test_a_fit_that_does_not_converge_is_named(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mamushi.selection.linear.STEPS", 1)
    with pytest.raises(UserError, match=r"has not converged in 1 steps; .*prior"):
        run("linear", pool)
