"""Files that score texts without the run that fitted them.

A scorer is the sum of an ``intercept`` and a weight for every term of a text, times its tf-idf:
words in the place of vectors, and n-grams of words and of characters (Salton and Buckley, 1988). A
text is scored by itself, so that its score does not depend on which others are scored beside it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file
from sklearn.feature_extraction.text import TfidfTransformer

from mamushi.io.files import reading, trained_metadata
from mamushi.selection.arrays import Doubles
from mamushi_curate.vectors.word_vectors import count_words
from mamushi_extras.unlabelled.screen import rarity_of
from mamushi_extras.words.ngrams import count_ngrams

KINDS = ("components", "words", "characters")
"""Of terms, as ``count_words`` and ``count_ngrams`` count them."""


@dataclass(frozen=True)
class Scorer:
    """What ranked a list: of each kind of terms the ``columns`` (d,) among all hashed ones, their
    weights (d,), and what weighs their counts. ``text`` and ``part`` say what was read of a row
    where it was fitted."""

    text: str
    part: str
    intercept: float
    terms: Sequence[tuple[NDArray[np.int32], Doubles, TfidfTransformer]]

    def scores(self, texts: Sequence[str]) -> Doubles:
        """Return the score of each text (n,), an estimate of log p1/p2 in nats; NaN of one without
        a term that is known."""
        total, says = np.full(len(texts), self.intercept), np.zeros(len(texts), np.bool_)
        counts = [count_words(texts), *count_ngrams(texts)]
        for of_kind, (columns, weights, rarity) in zip(counts, self.terms, strict=True):
            x = rarity.transform(of_kind[:, columns])
            total += x @ weights
            says |= x.getnnz(axis=1) > 0
        return np.where(says, total, np.nan)


def read_scorer(path: Path) -> Scorer:
    """Read a scorer. Raises ``UserError`` for a missing or damaged file, and for another one."""
    with reading(path, do="give what mamushi export --to scorer wrote"):
        scorer, tensors = trained_metadata(path)["scorer"], load_file(path)
        terms = [
            tuple(tensors[f"{kind}.{name}"] for name in ("columns", "weights", "rarity"))
            for kind in KINDS
        ]
        return Scorer(
            text=scorer["text"],
            part=scorer["part"],
            intercept=float(tensors["intercept"][0]),
            terms=[(columns, weights, rarity_of(rarity)) for columns, weights, rarity in terms],
        )
