"""A first look at a corpus that is too large to be embedded: which of its texts can be of a domain.

A logistic regression on hashed words (tf-idf) tells the examples of the domain from a sample of the
corpus. The texts that score highest by it are embedded and ranked; of the others nothing is kept.
A document that is divided into windows scores as the best of these.

The examples, a sample of the domain, say what is missed: each passes where it is among the highest
by a fit without it and its copies. A sample of the texts beneath says less: a thousand without one
of the domain leave room for 3,000 in a million.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from sklearn.linear_model import LogisticRegression

from mamushi.data.duplicates import find_duplicates
from mamushi.data.scripts import units
from mamushi_extras.windows.windows import parts

_Scores = NDArray[np.float32]

FEATURES, FOLDS = 2**20, 10
COPIES, SHINGLE = 0.5, 3
"""Similarity at which examples are taken for copies, and words of a shingle."""


@dataclass
class Screen:
    """Scores texts by the ``weights`` (FEATURES, 1 + FOLDS) of their words, times their ``rarity``:
    first those by all examples, then those by all but a fold, which ``fold`` (m,) has of each.
    Documents are divided by ``windows``, if that is not None."""

    weights: _Scores
    rarity: TfidfTransformer
    fold: NDArray[np.int64]
    windows: Mapping[str, Any] | None = None

    def scores(self, texts: Iterable[Any]) -> _Scores:
        """Return the scores of each text (n, 1 + FOLDS): the higher, the more like the examples. A
        text without words has the lowest."""
        vectors = self.rarity.transform(_counts(texts))
        scores = np.asarray(vectors @ self.weights)
        scores[vectors.getnnz(axis=1) == 0] = -np.inf
        return scores

    def margins(
        self, lowest: NDArray[np.float64], examples: Sequence[str], unseen: Sequence[str] = ()
    ) -> NDArray[np.float64]:
        """Return by how much the examples are above the ``lowest`` score (1 + FOLDS,) that passes
        by the fits without them, and then ``unseen`` ones, to which nothing was fitted; a text
        without words as the lowest one."""
        column = np.concatenate([1 + self.fold, np.zeros(len(unseen), np.int64)])
        scores = self.scores([*examples, *unseen])[np.arange(len(column)), column]
        margin = scores.astype(np.float64) - lowest[column]
        return np.maximum(margin, margin[np.isfinite(margin)].min(initial=0.0))


def fit_screen(
    examples: Sequence[str], sample: Sequence[str], windows: Mapping[str, Any] | None = None
) -> Screen:
    """Fit a screen to the examples against a ``sample`` of the corpus, of which some may be of the
    domain as well."""
    from scipy.sparse import vstack

    counts, m = _counts([*examples, *sample]), len(examples)
    rarity = TfidfTransformer(sublinear_tf=True).fit(counts)
    # A weight for each word that occurs, and not for each that could.
    occurring = np.unique(counts.indices)
    vectors = rarity.transform(counts)[:, occurring]
    domain, corpus = vectors[:m], vectors[m:]

    def fitted(rows: NDArray[np.bool_]) -> _Scores:
        labels = np.repeat([1, 0], [rows.sum(), corpus.shape[0]])
        model = LogisticRegression(class_weight="balanced", max_iter=200)
        model.fit(vstack([domain[rows], corpus]), labels)
        return np.asarray(model.coef_[0], np.float32)

    # Copies of a text are left out with it.
    every = np.ones(m, dtype=bool)
    roots = find_duplicates(examples, every, threshold=COPIES, words=SHINGLE).roots
    distinct, cluster = np.unique(roots, return_inverse=True)
    fold = (np.random.default_rng(0).permutation(len(distinct)) % FOLDS)[cluster]
    weights = np.zeros((FEATURES, 1 + FOLDS), np.float32)
    fits = [every, *(fold != number for number in range(FOLDS))]
    weights[occurring] = np.stack([fitted(rows) for rows in fits], axis=1)
    return Screen(weights, rarity, fold, windows)


def rarity_of(weights: NDArray[Any]) -> TfidfTransformer:
    """Return what weighs words by how rare they are, (FEATURES,), as that which was fitted."""
    rarity = TfidfTransformer(sublinear_tf=True)
    rarity.idf_ = weights
    return rarity


def windows_of(text: Any, settings: Mapping[str, Any] | None) -> list[Any]:
    """Return the windows of a document; what is not divided, or no text, as it is."""
    if settings is None or not isinstance(text, str):
        return [text]
    return [text[start:stop] for start, stop in parts(text, settings)]


def _counts(texts: Iterable[Any]) -> Any:
    """Return how often each text has each hashed word (n, FEATURES); what is no text has none."""
    return HashingVectorizer(
        **{"n_features": FEATURES, "alternate_sign": False, "norm": None, "dtype": np.float32},
        analyzer=lambda text: units(text) if isinstance(text, str) else (),
    ).transform(texts)
