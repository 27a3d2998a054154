"""Vectors of texts without a model: leading components of their words (Deerwester et al., 1990)."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer

from mamushi.data.scripts import word_units

LEAST = 2
"""Texts that have a word before it says which of them are alike."""
FITTED = 50_000
"""Most texts, drawn at random, that the components are those of."""


class WordComponents(NamedTuple):
    """Hashed ``words`` (c,) with their ``rarity`` (c,), and what makes vectors of a text's tf-idf:
    ``directions`` (width, c)."""

    words: NDArray[np.int64]
    rarity: NDArray[np.float32]
    directions: NDArray[np.float32]


def hash_terms(texts: Iterable[str], **options: Any) -> sparse.csr_matrix:
    """Count the hashed terms in each text: (n, 2^20), float32."""
    options |= {"n_features": 2**20, "alternate_sign": False, "norm": None, "dtype": np.float32}
    return HashingVectorizer(**options).transform(texts)


def count_words(texts: Iterable[str] | None) -> sparse.csr_matrix:
    """Count the hashed words in each text."""
    assert texts is not None
    return hash_terms(texts, analyzer=word_units)


def fit_components(texts: Sequence[str], width: int) -> tuple[WordComponents, NDArray[Any]]:
    """Return the first ``width`` components (n, width) of the texts' tf-idf, with sublinear counts,
    by a randomized decomposition with a fixed seed, and what makes them; fewer where there are
    fewer words. Numbers have the standard deviation 1 over all texts and components."""
    counts = count_words(texts)
    frequency = np.bincount(counts.indices, minlength=counts.shape[1])
    columns = np.flatnonzero(frequency >= LEAST)
    if not columns.size:
        nothing = np.zeros((1, 0), np.float32)
        return WordComponents(columns, nothing[0], nothing), np.zeros((len(texts), 1))
    weigh = TfidfTransformer(sublinear_tf=True)
    x = weigh.fit_transform(counts[:, columns])
    sample = np.sort(np.random.default_rng(0).permutation(len(texts))[:FITTED])
    model = TruncatedSVD(min(width, *x.shape), random_state=0).fit(x[sample])
    vectors = model.transform(x)
    scale = vectors.std()
    scale = scale if scale > 0 else 1.0
    return WordComponents(columns, weigh.idf_, model.components_ / scale), vectors / scale
