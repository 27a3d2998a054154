"""Selectors fitted to all texts of a cell: the coefficients of their logistic regressions, as
weights of features."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import normalize

from mamushi.errors import UserError
from mamushi.selection.arrays import Doubles
from mamushi.selection.crossfit import SAMPLE, Task, derive_seed, draw_sample
from mamushi.selection.linear import (
    count_ngrams,
    count_words,
    estimate_layers,
    fit_exactly,
    fit_sgd,
    logistic,
    moments_of,
)
from mamushi.selection.nested import combined, inner_scores, one_by_one
from mamushi.selection.pool import Pool
from mamushi.selection.selectors._stack import ngrams
from mamushi.selection.statistics import standard_scale, sums
from mamushi.selection.word_vectors import WordComponents
from mamushi_extras.doors.scorers import CHARACTERS, COMPONENTS, UNITS, VECTORS, WORDS


@dataclass(frozen=True)
class AffineWeights:
    """An intercept and, by the features that they weigh, weights (d,); of words with the columns
    (d,) that these are among all hashed ones, and their rarity (d,)."""

    intercept: float
    parts: Mapping[str, tuple[NDArray[Any], ...]]
    joint: bool = False

    def times(self, factor: float, shift: float = 0.0) -> AffineWeights:
        """Return the weights of what is a multiple of this and a ``shift``."""
        parts = {name: (factor * part[0], *part[1:]) for name, part in self.parts.items()}
        return AffineWeights(factor * self.intercept + shift, parts)

    def plus(self, weights: AffineWeights) -> AffineWeights:
        """Return the weights of a sum, whose terms have no features in common."""
        return AffineWeights(self.intercept + weights.intercept, {**self.parts, **weights.parts})


def of_vectors(model: Any, mean: NDArray[Any], scale: NDArray[Any]) -> AffineWeights:
    """Return the weights of vectors by a ``model`` of standardised ones."""
    weights = model.coef_[0].astype(np.float64) / scale
    return AffineWeights(float(model.intercept_[0] - mean @ weights), {VECTORS: (weights,)})


def of_words(
    task: Task, counts: Mapping[str, sparse.csr_matrix], fit: Callable[[sparse.csr_matrix], Any]
) -> tuple[AffineWeights, Doubles]:
    """Return the weights by what is fitted to the tf-idf of n-grams, of which there are ``counts``
    (n, d) by name, and the logits of the training texts."""
    seen, blocks = [], []
    for matrix in counts.values():
        training = matrix[task.train]
        columns, tfidf = np.unique(training.indices), TfidfTransformer(sublinear_tf=True)
        blocks.append(tfidf.fit_transform(training[:, columns]))
        seen.append((columns.astype(np.int32), tfidf.idf_))
    x = sparse.hstack(blocks, format="csr")
    decide = fit(x)
    ends = np.cumsum([len(columns) for columns, _ in seen])[:-1]
    along = np.split(decide.model.coef_[0].astype(np.float64), ends)
    parts = {name: (w, *words) for name, w, words in zip(counts, along, seen, strict=True)}
    intercept = float(decide.model.intercept_[0])
    return AffineWeights(intercept, parts, joint=len(parts) > 1), decide(x)


def whole_task(pool: Pool, settings: Mapping[str, Any], seed: int) -> Task:
    """Return the task that fits to all examples, or the most that the selector fits to."""
    train = np.arange(len(pool.ids))
    if settings["fit_sample"] is not None and len(train) > settings["fit_sample"]:
        rng = np.random.default_rng(derive_seed(seed, SAMPLE))
        train = train[draw_sample(pool.forget, settings["fit_sample"], rng)]
    n, mean, variance = sums(pool, np.zeros(len(pool.ids), np.int64), 1).moments([0])
    scale, held = standard_scale(n, mean, variance), np.empty(0, np.int64)
    return Task(pool.embeddings, pool.forget, train, held, mean, scale, seed, pool.groups)


def fit_whole(pool: Pool, kind: str, settings: Mapping[str, Any], seed: int) -> AffineWeights:
    """Fit a selector to all examples of a pool. Raises ``UserError`` for one that is no sum over
    features, and as the selector does."""
    fits = {
        "lexical": _lexical,
        "linear": _linear,
        "mamushi_lr": _mamushi_lr,
        "mamushi_words": _mamushi_words,
        "stack": _stack,
    }
    if kind not in fits:
        problem = f"{kind!r} is no weighted sum, and cannot be saved"
        raise UserError(problem, do=f"rank by {', '.join(fits)}")
    return fits[kind](pool, whole_task(pool, settings, seed), settings)


def _lexical(pool: Pool, task: Task, settings: Mapping[str, Any]) -> AffineWeights:
    counts = dict(zip((WORDS, CHARACTERS), count_ngrams(pool), strict=True))
    return of_words(task, counts, _of_ngrams(task, settings["prior"]))[0]


def _of_ngrams(task: Task, prior: float) -> Callable[[sparse.csr_matrix], Any]:
    return lambda x: logistic(normalize(x), task.forget[task.train], prior)


def _linear(pool: Pool, task: Task, settings: Mapping[str, Any]) -> AffineWeights:
    layers = [pool.at(depth)[task.train] for depth in settings["depths"]]
    x = np.hstack(layers).astype(np.float32)
    mean, scale = moments_of(x)
    model = logistic((x - mean) / scale, task.forget[task.train], settings["prior"] / x.shape[1])
    return of_vectors(model.model, mean, scale)


def _mamushi_lr(pool: Pool, task: Task, settings: Mapping[str, Any]) -> AffineWeights:
    if settings["solver"] == "newton-cholesky":
        return of_vectors(fit_exactly(task, settings["alpha"]).model, task.mean, task.scale)
    return of_vectors(fit_sgd(task, settings), task.mean, task.scale)


def _mamushi_words(pool: Pool, task: Task, settings: Mapping[str, Any]) -> AffineWeights:
    if "words" in pool.columns:
        problem = "'mamushi_words' has its words from a screen"
        raise UserError(problem, do="rank by another selector")
    vectors = of_vectors(fit_exactly(task, settings["alpha"]).model, task.mean, task.scale)
    along = pool.embeddings[task.train].astype(np.float64) @ vectors.parts[VECTORS][0]
    counts = {UNITS: count_words(pool.texts)}
    words, logits = of_words(task, counts, _of_ngrams(task, settings["prior"]))
    standard = [
        part.times(1 / (by.std() or 1.0), -by.mean() / (by.std() or 1.0))
        for part, by in ((vectors, along + vectors.intercept), (words, logits))
    ]
    return standard[0].plus(standard[1])


def _stack(pool: Pool, task: Task, settings: Mapping[str, Any]) -> AffineWeights:
    counts = dict(zip((WORDS, CHARACTERS), count_ngrams(pool), strict=True))
    prior, y = settings["ngrams_prior"], task.forget[task.train]
    layer = partial(estimate_layers, layers=[pool.embeddings], prior=settings["prior"])
    members = [one_by_one(layer), *(ngrams(matrix, prior) for matrix in counts.values())]
    scores = inner_scores(task, members, settings["folds"])
    at_zero, *along = combined(scores, y, np.vstack([np.zeros(3), np.eye(3)]))[0]
    fits = [_linear(pool, task, {**settings, "depths": [1]})]
    for name, matrix in counts.items():
        liblinear = partial(logistic, y=y, variance=prior, solver="liblinear", tolerance=1e-2)
        fits.append(of_words(task, {name: matrix}, liblinear)[0])
    total = AffineWeights(float(at_zero), {})
    for weight, fit in zip(np.array(along) - at_zero, fits, strict=True):
        total = total.plus(fit.times(float(weight)))
    return total


def of_words_alone(weights: AffineWeights, components: WordComponents) -> AffineWeights:
    """Return weights of vectors of words as those of the words."""
    parts = dict(weights.parts)
    if VECTORS in parts:
        along = components.directions.astype(np.float64).T @ parts.pop(VECTORS)[0]
        parts[COMPONENTS] = (along, components.words.astype(np.int32), components.rarity)
    return AffineWeights(weights.intercept, parts, weights.joint)
