"""Selectors fitted to all texts of a cell by their own code, as weights of features.

A fit is affine in its features. So it is asked for the logits of probes beside the training texts,
which have no feature, or one: what these say are its intercept and its weights.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer

from mamushi.errors import UserError
from mamushi.selection.arrays import Doubles
from mamushi.selection.crossfit import SAMPLE, Task, derive_seed, draw_sample
from mamushi.selection.linear import (
    count_ngrams,
    count_words,
    estimate_exactly,
    estimate_layers,
    estimate_ngrams,
    estimate_sgd,
)
from mamushi.selection.nested import combined, inner_scores, one_by_one
from mamushi.selection.pool import Pool
from mamushi.selection.selectors._stack import ngrams
from mamushi.selection.statistics import standard_scale, sums
from mamushi.selection.word_vectors import WordComponents
from mamushi_extras.doors.scorers import CHARACTERS, COMPONENTS, UNITS, VECTORS, WORDS

TaskScorer = Callable[[Task], Doubles]


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


def of_vectors(estimate: TaskScorer, task: Task, layers: Sequence[NDArray[Any]]) -> AffineWeights:
    """Return the weights of an ``estimate`` by embeddings, of one or more ``layers`` (n, d) side by
    side: at the mean of the training texts, and a standard deviation from it along each axis."""
    x = np.hstack([layer[task.train] for layer in layers]).astype(np.float32)
    mean, scale = x.mean(axis=0, dtype=np.float64), x.std(axis=0, dtype=np.float64)
    scale[scale == 0] = 1.0
    probes = np.vstack([mean, mean + np.diag(scale)]).astype(np.float32)
    at_mean, *along = estimate(_with_probes(task, np.vstack([x, probes]), len(probes)))
    step = (probes[1:] - probes[0]).astype(np.float64).diagonal()
    weights = (np.array(along) - at_mean) / step
    return AffineWeights(
        float(at_mean - probes[0].astype(np.float64) @ weights), {VECTORS: (weights,)}
    )


def of_words(
    estimate: Callable[[Task, list[sparse.csr_matrix]], Doubles],
    task: Task,
    counts: Mapping[str, sparse.csr_matrix],
) -> AffineWeights:
    """Return the weights of an ``estimate`` by n-grams, of which there are ``counts`` (n, d) by
    name: of a text that has one n-gram alone, tf-idf is 1 whatever its rarity."""
    training = {name: matrix[task.train] for name, matrix in counts.items()}
    occurring = {name: np.unique(matrix.indices) for name, matrix in training.items()}
    sizes = [*map(len, occurring.values())]
    first, number = np.cumsum([1, *sizes]), 1 + sum(sizes)
    matrices = []
    for (name, matrix), start in zip(training.items(), first[:-1], strict=True):
        columns, rows = occurring[name], start + np.arange(len(occurring[name]))
        ones = np.ones(len(columns), matrix.dtype)
        probes = sparse.csr_matrix((ones, (rows, columns)), (number, matrix.shape[1]))
        matrices.append(sparse.vstack([matrix, probes], format="csr"))
    at_nothing, *along = np.split(estimate(_with_probes(task, None, number), matrices), first[:-1])
    parts = {}
    for name, logits in zip(training, along, strict=True):
        rarity = TfidfTransformer(sublinear_tf=True).fit(training[name][:, occurring[name]]).idf_
        parts[name] = (logits - at_nothing[0], occurring[name].astype(np.int32), rarity)
    return AffineWeights(float(at_nothing[0]), parts, joint=len(parts) > 1)


def _with_probes(task: Task, embeddings: NDArray[Any] | None, number: int) -> Task:
    """Return a task of the training texts alone, which scores as many probes behind them."""
    n = len(task.train)
    return replace(
        task,
        embeddings=np.zeros((n + number, 1), np.float16) if embeddings is None else embeddings,
        forget=np.append(task.forget[task.train], np.zeros(number, bool)),
        train=np.arange(n),
        held=np.arange(n, n + number),
        groups=None,
    )


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
    return of_words(lambda t, c: estimate_ngrams(t, c, settings["prior"])[0], task, counts)


def _linear(pool: Pool, task: Task, settings: Mapping[str, Any]) -> AffineWeights:
    layers = [pool.at(depth) for depth in settings["depths"]]
    return of_vectors(partial(_of_layers, prior=settings["prior"]), task, layers)


def _of_layers(task: Task, prior: float) -> Doubles:
    return estimate_layers(task, [task.embeddings], prior)[0]


def _mamushi_lr(pool: Pool, task: Task, settings: Mapping[str, Any]) -> AffineWeights:
    if settings["solver"] == "newton-cholesky":
        # The same whatever the folds of a repeat.
        return of_vectors(partial(_exactly, alpha=settings["alpha"]), task, [pool.embeddings])
    return of_vectors(lambda t: estimate_sgd(t, settings)[0], task, [pool.embeddings])


def _exactly(task: Task, alpha: float) -> Doubles:
    return estimate_exactly(task, alpha)[0]


def _mamushi_words(pool: Pool, task: Task, settings: Mapping[str, Any]) -> AffineWeights:
    if "words" in pool.columns:
        do = "score by the screen, or rank by another selector"
        raise UserError("'mamushi_words' has its words from a screen", do=do)
    counts = count_words(pool.texts)
    parts = (
        of_vectors(partial(_exactly, alpha=settings["alpha"]), task, [pool.embeddings]),
        of_words(lambda t, c: estimate_ngrams(t, c, settings["prior"])[0], task, {UNITS: counts}),
    )
    vectors = pool.embeddings[task.train].astype(np.float64)
    logits = (
        vectors @ parts[0].parts[VECTORS][0],
        _tfidf(counts[task.train], parts[1].parts[UNITS]) @ parts[1].parts[UNITS][0],
    )
    scaled = [
        part.times(1 / (along.std() or 1.0), -(along.mean() + part.intercept) / (along.std() or 1))
        for part, along in zip(parts, logits, strict=True)
    ]
    return scaled[0].plus(scaled[1])


def _tfidf(counts: sparse.csr_matrix, part: tuple[NDArray[Any], ...]) -> sparse.csr_matrix:
    return TfidfTransformer(sublinear_tf=True).fit_transform(counts[:, part[1]])


def _stack(pool: Pool, task: Task, settings: Mapping[str, Any]) -> AffineWeights:
    counts = dict(zip((WORDS, CHARACTERS), count_ngrams(pool), strict=True))
    prior, of_layer = settings["ngrams_prior"], partial(_of_layers, prior=settings["prior"])
    members = [
        one_by_one("embedding", lambda t: (of_layer(t), {})),
        *(ngrams(name, matrix, prior) for name, matrix in counts.items()),
    ]
    scores, _ = inner_scores(task, members, settings["folds"])
    number = len(members)
    ends = np.vstack([np.zeros(number), np.eye(number)])
    at_zero, *along = combined(scores, task.forget[task.train], ends)[0]

    def by(name: str) -> Callable[[Task, list[sparse.csr_matrix]], Doubles]:
        return lambda t, c: ngrams(name, c[0], prior).estimate([t], True)[0]

    fits = [
        of_vectors(of_layer, task, [pool.embeddings]),
        *(of_words(by(name), task, {name: matrix}) for name, matrix in counts.items()),
    ]
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
