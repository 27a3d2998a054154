"""Files that score texts without the run that fitted them.

A selector is a sum of parts, each a weight for every feature of a text: tf-idf of hashed words,
n-grams of words or of characters (Salton and Buckley, 1988), or vectors of a model. A text is
scored by itself, so that its score does not depend on which others are scored beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file
from sklearn.feature_extraction.text import TfidfTransformer

from mamushi.errors import UserError
from mamushi.io.tensors import trained_metadata
from mamushi.selection.arrays import Doubles
from mamushi.selection.linear import BITS, count_ngrams, count_words
from mamushi.selection.pool import Pool
from mamushi_extras.doors.embedder import Embedder
from mamushi_extras.unlabelled.screen import rarity_of

VECTORS, UNITS, WORDS, CHARACTERS = "vectors", "units", "words", "characters"
COMPONENTS = "components"
"""The words again, weighed as the vectors that are made of them."""


@dataclass(frozen=True)
class Scorer:
    """A selector: an ``intercept``, weights of ``vectors`` (d,), and by kind of ``words`` a weight
    for each and what weighs their counts. ``text`` and ``part`` say what was read of a row where it
    was fitted."""

    text: str
    part: str
    intercept: float
    words: Mapping[str, tuple[Doubles, TfidfTransformer]]
    vectors: Doubles | None
    embedder: Embedder | None

    def scores(self, texts: Sequence[str]) -> Doubles:
        """Return the score of each text (n,), an estimate of log p1/p2 in nats; NaN of one without
        a word or a token that is known. Raises ``UserError`` as ``Embedder.vectors``."""
        total = np.full(len(texts), self.intercept)
        if self.embedder is not None and self.vectors is not None:
            total += self.embedder.vectors(texts) @ self.vectors
        counts: dict[str, Any] = {}
        if {WORDS, CHARACTERS} & self.words.keys():
            of_texts = np.array([*texts, None], object)[:-1]
            pool = Pool(of_texts, np.empty(0, bool), np.empty((0, 0), np.float16), texts=of_texts)
            counts |= zip((WORDS, CHARACTERS), count_ngrams(pool), strict=True)
        if {UNITS, COMPONENTS} & self.words.keys():
            counts |= dict.fromkeys((UNITS, COMPONENTS), count_words(texts))
        along, said = np.zeros(len(texts)), np.full(len(texts), self.embedder is not None)
        for kind, (weights, rarity) in self.words.items():
            x = rarity.transform(counts[kind])
            along += x @ weights
            said |= x.power(2).sum(axis=1).A1 > 0
        return np.where(said, total + along, np.nan)


def read_scorer(path: Path, model: str | None = None) -> Scorer:
    """Read a scorer. Raises ``UserError`` for a missing or damaged file, for one that scores
    nothing, and for a ``model`` that is not the one that it needs."""
    try:
        scorer = trained_metadata(path)["scorer"]
    except (UserError, KeyError):
        if not path.exists():
            raise
        # Whatever it is, it may be the user's own.
        do = "give what mamushi export --to scorer wrote"
        raise UserError("is no scorer, or is damaged", where=path, do=do) from None
    if (scorer["vectors"] is None) != (model is None):
        if model is not None:
            raise UserError("scores words, and needs no model", where=path, do="leave --model out")
        do = f"name it with --model; it was {scorer['vectors']['source']}"
        raise UserError("scores vectors of a model", where=path, do=do)
    tensors = load_file(path)
    kinds = [
        kind for kind in (UNITS, WORDS, CHARACTERS, COMPONENTS) if f"{kind}.columns" in tensors
    ]
    return Scorer(
        text=scorer["text"],
        part=scorer["part"],
        intercept=float(tensors["intercept"][0]),
        words={kind: _of_words(tensors, kind) for kind in kinds},
        vectors=tensors.get(f"{VECTORS}.weights"),
        embedder=None if model is None else Embedder(model, scorer["vectors"], path),
    )


def _of_words(tensors: Mapping[str, NDArray[Any]], kind: str) -> tuple[Doubles, TfidfTransformer]:
    # What was in no training text has the rarity 0, and so no part in a text's length.
    weights, rarity = np.zeros(2**BITS), np.zeros(2**BITS, np.float32)
    columns = tensors[f"{kind}.columns"]
    weights[columns], rarity[columns] = (
        tensors[f"{kind}.{name}"] for name in ("weights", "rarity")
    )
    return weights, rarity_of(rarity)
