"""What ranked texts, as a file that scores others: as pipelines of scikit-learn do, and as the
selectors themselves."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mamushi.selection.pool import Pool
from mamushi_curate.vectors.word_vectors import fit_components
from mamushi_extras.doors.saving import (
    Weights,
    fit_whole,
    of_words_alone,
    save_scorer,
    whole_task,
)
from mamushi_extras.doors.scorers import read_scorer
from mamushi_extras.words.ngrams import count_ngrams
from mamushi_extras.words.stacking import combine, embedding, inner_scores, ngrams
from tests.support.lab import WORDS

FOLDS = {"folds": 5, "fit_sample": None}


def drawn(n: int, seed: int) -> tuple[list[str], np.ndarray]:
    """Texts of both kinds, with words of their own, and which are of the second."""
    rng = random.Random(seed)
    kinds = [rng.choice([*WORDS]) for _ in range(n)]
    texts = [
        " ".join(rng.choices(WORDS[kind] + ["both", f"w{rng.randrange(50)}"], k=rng.randint(3, 20)))
        for kind in kinds
    ]
    return texts, np.array([kind == "theirs" for kind in kinds])


TEXTS, FORGET = drawn(300, 0)
NEW = [*drawn(40, 1)[0], "", "?!", "unseen nothing"]


def pool_of_texts(x: Any = None) -> Pool:
    x = np.random.default_rng(0).normal(size=(300, 1)) if x is None else x
    ids = np.array([f"t{i}" for i in range(300)], object)
    return Pool(ids, FORGET, x, texts=np.array(TEXTS, object))


def saved(path: Path, weights: Weights) -> Path:
    save_scorer(path, weights, {"scorer": {"text": "text", "part": "whole", "vectors": None}})
    return path


def saved_words(path: Path) -> Path:
    """A scorer by words, and by words as vectors."""
    components, vectors = fit_components(TEXTS, 8)
    settings = {**FOLDS, "alpha": 1.0, "prior": 1.0}
    weights = fit_whole(pool_of_texts(vectors), "mamushi_words", settings, 0)
    return saved(path, of_words_alone(weights, components))


def words(analyzer: str, lengths: tuple[int, int], token: str = r"\b\w+\b") -> Any:
    pattern = {"token_pattern": token} if analyzer == "word" else {}
    return HashingVectorizer(
        **{"analyzer": analyzer, "ngram_range": lengths, "n_features": 2**20, **pattern},
        **{"alternate_sign": False, "norm": None, "dtype": np.float32},
    )


def fitted(**more: Any) -> LogisticRegression:
    return LogisticRegression(class_weight="balanced", max_iter=5000, **more)


def test_vectors_of_words_are_a_pipeline_of_scikit_learn(tmp_path: Path) -> None:
    """Fitted to components of the words, and saved as a weight of each word."""
    components, vectors = fit_components(TEXTS, 8)
    settings = {**FOLDS, "solver": "newton-cholesky", "alpha": 0.1, "seeds_averaged": 3}
    weights = fit_whole(pool_of_texts(vectors), "mamushi_lr", settings, 0)
    path = saved(tmp_path / "a.safetensors", of_words_alone(weights, components))
    hashing = words("word", (1, 1), r"[^\W\d_]+")
    counts = hashing.transform(TEXTS)
    columns = np.flatnonzero(np.bincount(counts.indices, minlength=2**20) > 1)
    tfidf = TfidfTransformer(sublinear_tf=True).fit(counts[:, columns])
    svd = TruncatedSVD(8, random_state=0).fit(tfidf.transform(counts[:, columns]))
    scaled = make_pipeline(tfidf, svd, StandardScaler())
    x = scaled.fit_transform(counts[:, columns])
    model = fitted(C=1 / (0.1 * 300), solver="newton-cholesky", tol=1e-10).fit(x, FORGET)
    expected = model.decision_function(scaled.transform(hashing.transform(NEW)[:, columns]))
    assert np.ptp(expected) > 2
    scores = read_scorer(path).scores(NEW)
    said = ~np.isnan(scores)
    np.testing.assert_allclose(scores[said], expected[said], atol=1e-4)
    assert not said[40:42].any() and said[:40].all()


def test_the_stack_scores_as_the_selector_scores_who_was_held_out(tmp_path: Path) -> None:
    """By its own functions, of texts and others in one pool."""
    settings = {**FOLDS, "prior": 10.0, "ngrams_prior": 30.0}
    x = np.random.default_rng(1).normal(size=(300 + len(NEW), 4)) + 3
    x[:300, 0] += FORGET
    weights = fit_whole(pool_of_texts(x[:300]), "stack", settings, 7)
    along = weights.pop("vectors.weights")
    scores = read_scorer(saved(tmp_path / "a.safetensors", weights)).scores(NEW) + x[300:] @ along

    task = whole_task(pool_of_texts(x[:300]), settings, 7)
    everything = Pool(
        ids=np.arange(len(x)).astype(str).astype(object),
        forget=np.append(FORGET, np.zeros(len(NEW), bool)),
        embeddings=x,
        texts=np.array([*TEXTS, *NEW], object),
    )
    members = [
        embedding(10.0),
        *(ngrams(counts, 30.0) for counts in count_ngrams(everything.texts)),
    ]
    inner = inner_scores(task, members, 5)
    held = np.arange(300, len(x))
    both = replace(task, embeddings=x, forget=everything.forget, held_out=held)
    logits = np.stack([member([both])[0] for member in members], axis=1)
    expected = combine(inner, FORGET, logits)
    assert np.ptp(expected) > 2
    said = ~np.isnan(scores)
    np.testing.assert_allclose(scores[said], expected[said], atol=1e-4)
    assert not said[40:42].any() and said[:40].all()
