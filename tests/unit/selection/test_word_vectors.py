"""Vectors by the words alone, beside scikit-learn's exact decomposition."""

import numpy as np
import pytest
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from mamushi.selection.word_vectors import components_of_words
from tests.support.worded import worded


def test_they_are_the_leading_components_of_tf_idf() -> None:
    texts = np.asarray(worded(200).texts).tolist()
    vectors = components_of_words(texts, 8)
    x = TfidfVectorizer(sublinear_tf=True, min_df=2, token_pattern=r"\S+").fit_transform(texts)
    exact = TruncatedSVD(8, algorithm="arpack", random_state=0).fit_transform(x)
    assert vectors.shape == (200, 8)
    assert vectors.std() == pytest.approx(1, abs=1e-3)
    # Its last components, whose values are close, may be turned in their plane.
    found, wanted = (z.astype(np.float64) @ z.T.astype(np.float64) for z in (vectors, exact))
    assert np.corrcoef(found.ravel(), wanted.ravel())[0, 1] > 0.995
