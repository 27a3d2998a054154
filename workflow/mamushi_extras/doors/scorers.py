"""Files that score texts without the run that fitted them.

A selector is a sum of parts, each a weight for every feature of a text: tf-idf of hashed words,
n-grams of words or of characters (Salton and Buckley, 1988), or vectors of a model. A text is
scored by itself, so that its score does not depend on which others are scored beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file
from scipy import sparse
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


class LinearPart(NamedTuple):
    """A weight for each feature (d,), and of words what weighs their counts."""

    weights: Doubles
    rarity: TfidfTransformer | None


@dataclass(frozen=True, kw_only=True)
class Scorer:
    """A selector: its ``parts`` by the features that they weigh. ``joint`` words and characters
    have one length together. ``text`` and ``part`` say what was read of a row where it was
    fitted."""

    text: str
    part: str
    parts: Mapping[str, LinearPart]
    intercept: float
    joint: bool
    embedder: Embedder | None

    def scores(self, texts: Sequence[str]) -> Doubles:
        """Return the score of each text (n,), an estimate of log p1/p2 in nats. Raises
        ``UserError`` as ``Embedder.vectors``."""
        parts = dict(self.parts)
        total = np.full(len(texts), self.intercept)
        if VECTORS in parts:
            assert self.embedder is not None
            total += self.embedder.vectors(texts) @ parts.pop(VECTORS).weights
        counts = _counts(texts, parts.keys())
        weighed = [_weighed(counts[name], part) for name, part in parts.items()]
        if not weighed:
            return total
        lengths = np.sqrt(sum(is_there for _, is_there in weighed)) if self.joint else 1.0
        return total + sum(along for along, _ in weighed) / np.maximum(lengths, 1.0)


def _counts(texts: Sequence[str], names: Any) -> dict[str, Any]:
    """Return how often each text has each hashed feature (n, 2^BITS)."""
    counts: dict[str, Any] = {}
    if {WORDS, CHARACTERS} & set(names):
        pool = Pool(
            ids=np.empty(0, object),
            forget=np.empty(0, bool),
            embeddings=np.empty((0, 0), np.float16),
            texts=np.array([*texts, None], object)[:-1],
        )
        counts |= zip((WORDS, CHARACTERS), count_ngrams(pool), strict=True)
    if {UNITS, COMPONENTS} & set(names):
        counts |= dict.fromkeys((UNITS, COMPONENTS), count_words(texts))
    return counts


def _weighed(counts: sparse.csr_matrix, part: LinearPart) -> tuple[Doubles, Doubles]:
    """Return the sum of the weights of each text's tf-idf (n,), and whether it has any (n,)."""
    assert part.rarity is not None
    x = part.rarity.transform(counts)
    return x @ part.weights, (x.multiply(x).sum(axis=1).A1 > 0).astype(np.float64)


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
    embedder = None if model is None else Embedder(model, scorer["vectors"], path)
    return Scorer(
        text=scorer["text"],
        part=scorer["part"],
        parts={name: _part_of(tensors, name) for name in scorer["parts"]},
        intercept=float(tensors["intercept"][0]),
        joint=scorer["joint"],
        embedder=embedder,
    )


def _part_of(tensors: Mapping[str, NDArray[Any]], name: str) -> LinearPart:
    if f"{name}.columns" not in tensors:
        return LinearPart(tensors[f"{name}.weights"], None)
    # What was in no training text has the rarity 0, and so no part in a text's length.
    weights, rarity = np.zeros(2**BITS), np.zeros(2**BITS, np.float32)
    columns = tensors[f"{name}.columns"]
    weights[columns], rarity[columns] = (
        tensors[f"{name}.{kind}"] for kind in ("weights", "rarity")
    )
    return LinearPart(weights, rarity_of(rarity))
