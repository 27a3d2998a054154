"""Vectors of texts without a model: the leading components of their words (Deerwester et al.,
1990)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer

from mamushi.selection.linear import blas, count_words

LEAST = 2
"""Texts that have a word before it says which of them are alike."""
FITTED = 50_000
"""Most texts, drawn at random, that the components are those of."""


def components_of_words(texts: Sequence[str], width: int) -> NDArray[np.float16]:
    """Return the first ``width`` components (n, width) of the texts' tf-idf, with sublinear counts,
    by a randomized decomposition with a fixed seed; fewer where they have fewer words. Numbers have
    the standard deviation 1 over all texts and components, for float16."""
    counts = count_words(texts)
    frequency = np.bincount(counts.indices, minlength=counts.shape[1])
    columns = np.flatnonzero(frequency >= LEAST)
    if not columns.size:
        return np.zeros((len(texts), 1), np.float16)
    x = TfidfTransformer(sublinear_tf=True).fit_transform(counts[:, columns])
    sample = np.sort(np.random.default_rng(0).permutation(len(texts))[:FITTED])
    # On one thread, because sums over threads round differently.
    with blas().limit(limits=1):
        model = TruncatedSVD(min(width, *x.shape), random_state=0).fit(x[sample])
        vectors = model.transform(x)
    scale = vectors.std()
    return np.asarray(vectors / (scale if scale > 0 else 1.0), np.float16)
