"""Counts of n-grams, and logistic regression on their tf-idf, whose rows have length 1."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import normalize

from mamushi.data.scripts import space_words
from mamushi.selection.crossfit import Fit, Task
from mamushi.selection.linear import decide, fit_logistic
from mamushi_curate.vectors.word_vectors import hash_terms

WORDS, CHARACTERS = (1, 2), (3, 5)  # Lengths of n-grams, and of those within a word's bounds.


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
