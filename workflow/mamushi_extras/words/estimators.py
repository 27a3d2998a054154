"""Logistic regressions on the tf-idf of n-grams, whose rows have length 1, and their combination
with that on embeddings by logits of examples that none of them has seen, made within a task:
stacking (Wolpert, 1992; van der Laan et al., 2007)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize

from mamushi.data.scripts import space_words
from mamushi.selection.arrays import Doubles
from mamushi.selection.crossfit import Fit, Task, derive_seed
from mamushi.selection.folds import stratified_folds
from mamushi.selection.linear import decide, fit_logistic
from mamushi_curate.vectors.word_vectors import hash_terms

WORDS, CHARACTERS = (1, 2), (3, 5)  # Lengths of n-grams, and of those within a word's bounds.
INNER = 2**32 - 4  # Sets the seed of the inner folds apart from those of other draws.
MEMBERS = 3
VARIANCE = 1.0  # Of a weight per standard deviation of the logits, before the labels are seen.


def count_ngrams(texts: Iterable[str] | None) -> list[sparse.csr_matrix]:
    """Count the hashed n-grams of words, and of characters, in each text: (n, 2^20), float32."""
    assert texts is not None
    # A word of one letter is a word. A space behind each, where a script has none.
    of_words = {"token_pattern": r"(?u)\b\w+\b", "preprocessor": lambda t: space_words(t.lower())}
    return [
        hash_terms(texts, analyzer="word", ngram_range=WORDS, **of_words),
        hash_terms(texts, analyzer="char_wb", ngram_range=CHARACTERS),
    ]


def estimate_ngrams(task: Task, counts: Sequence[sparse.csr_matrix], prior: float) -> Fit:
    """Return held-out logits from counts of n-grams: tf-idf with sublinear counts and the training
    rows' frequencies, each kind of n-gram as long as the other, a text of length 1."""
    weights = [tfidf(matrix, task.train, (task.train, task.held_out)) for matrix in counts]
    x, unseen = (normalize(sparse.hstack(m, format="csr")) for m in zip(*weights, strict=True))
    return decide(fit_logistic(x, task.forget[task.train], prior), unseen), {}


def tfidf(
    counts: sparse.csr_matrix, train: NDArray[np.int64], row_sets: Sequence[NDArray[np.int64]]
) -> list[sparse.csr_matrix]:
    """Return the tf-idf of each of ``row_sets``, rows of the counts, with sublinear counts and the
    frequencies of the rows ``train``; a text has length 1."""
    training = counts[train]
    # An n-gram that no training text has keeps the weight 0.
    seen = np.flatnonzero(np.bincount(training.indices, minlength=counts.shape[1]))
    weigh = TfidfTransformer(sublinear_tf=True).fit(training[:, seen])
    return [weigh.transform(counts[rows][:, seen]) for rows in row_sets]


def fit_standardised(
    task: Task, prior: float
) -> tuple[LogisticRegression, NDArray[np.float32], NDArray[np.float32]]:
    """Return the model of embeddings that are standardised by the training rows in float32, with
    their mean and scale (d,)."""
    x = task.embeddings[task.train].astype(np.float32)
    mean, scale = x.mean(axis=0, dtype=np.float64), x.std(axis=0, dtype=np.float64)
    # A constant column says nothing, and is left at zero.
    scale[scale <= np.abs(mean) * np.finfo(np.float32).eps] = np.inf
    mean, scale = mean.astype(np.float32), scale.astype(np.float32)
    model = fit_logistic((x - mean) / scale, task.forget[task.train], prior / x.shape[1])
    return model, mean, scale


def stacked_logits(
    task: Task, counts: Sequence[sparse.csr_matrix], settings: Mapping[str, Any]
) -> Callable[[Task], Doubles]:
    """Return what fits to the training rows of tasks within ``task``, and gives the logits
    (held_out, members) by the embedding and by the tf-idf of each of the ``counts`` (n, d).
    Frequencies, which take no label, are those of all training texts of ``task``."""
    rows = np.union1d(task.train, task.held_out)
    weighed = [tfidf(matrix, task.train, [rows])[0] for matrix in counts]

    def logits(of: Task) -> Doubles:
        model, mean, scale = fit_standardised(of, settings["prior"])
        members = [
            of.score_held_out(lambda held: decide(model, (of.embeddings[held] - mean) / scale))
        ]
        train, held = (np.searchsorted(rows, places) for places in (of.train, of.held_out))
        how = (settings["ngrams_prior"], "liblinear", 1e-2)
        for x in weighed:
            members.append(decide(fit_logistic(x[train], of.forget[of.train], *how), x[held]))
        return np.stack(members, axis=1)

    return logits


def inner_scores(task: Task, logits: Callable[[Task], Doubles], folds: int) -> Doubles:
    """Cross-fit members within a task: the logits (n, members) of its training examples, each by an
    estimator that has not seen it."""
    forget, seed = task.forget[task.train], derive_seed(task.seed, INNER)
    inner = stratified_folds(forget, folds, seed, task.groups_of_train)
    scores = np.full((len(forget), MEMBERS), np.nan)
    for i in range(folds):
        rows = {"train": task.train[inner != i], "held_out": task.train[inner == i]}
        scores[inner == i] = logits(replace(task, **rows))
    return scores


def combine(scores: Doubles, forget: NDArray[np.bool_], logits: Doubles) -> Doubles:
    """Calibrate members' ``logits`` (m, k) by a logistic regression on ``scores`` (n, k)."""
    mean, scale = scores.mean(axis=0), scores.std(axis=0)
    scale[scale == 0] = 1.0
    return decide(fit_logistic((scores - mean) / scale, forget, VARIANCE), (logits - mean) / scale)
