"""Files that score texts without the run that fitted them.

A selector is a sum of parts, each a weight for every feature of a text: tf-idf of hashed words,
n-grams of words or of characters (Salton and Buckley, 1988), or vectors of a model. A text is
scored by itself, so that its score does not depend on which others are scored beside it.
"""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
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
from mamushi_extras.unlabelled.screen import rarity_of

VECTORS, UNITS, WORDS, CHARACTERS = "vectors", "units", "words", "characters"
COMPONENTS = "components"
"""The words again, weighed as the vectors that are made of them."""


BATCH_TOKENS = 16384
"""Tokens of a forward pass."""


class Embedder:
    """A model, a folder or an id on the hub, and how its states become vectors: ``pooled`` is what
    the ``scorer`` says. It is opened when the first text comes."""

    def __init__(self, model: str, pooled: Mapping[str, Any], scorer: Path) -> None:
        self.model, self.pooled, self.scorer = model, pooled, scorer

    def vectors(self, texts: Sequence[str]) -> Doubles:
        """Return the vectors (n, width) of texts, those of several layers side by side; NaN of a
        text without tokens. Raises ``UserError`` for a model that is not the scorer's."""
        from mamushi.lm.embed import embed
        from mamushi.lm.tokens import TokenSet, encode, first_token, offsets_of

        model, accelerator, tokenizer, positions = self._opened
        most = min(self.pooled["max_length"], positions or self.pooled["max_length"])
        ids = [*encode(tokenizer, texts, most)]
        filled = np.array([bool(row) for row in ids], bool)
        tokens = np.array([token for row in ids for token in row], np.int32)
        offsets = offsets_of(np.array([len(row) for row in ids if row], np.int64))
        names = np.array([*map(str, np.flatnonzero(filled) + 1)], object)
        layers = embed(
            model,
            TokenSet(names, names, tokens, offsets),
            pooling=self.pooled["pooling"],
            layers=self.pooled["layers"],
            skip_first=self.pooled["skip_bos"] and first_token(tokenizer) is not None,
            batch_tokens=BATCH_TOKENS,
            accelerator=accelerator,
        )
        vectors = np.full((len(texts), layers.shape[0] * layers.shape[2]), np.nan)
        vectors[filled] = np.hstack([*layers])
        return vectors

    @cached_property
    def _opened(self) -> tuple[Any, Any, Any, int | None]:
        from mamushi.io.files import write_json
        from mamushi.lm import loading
        from mamushi.stages._models import open_arm

        source = Path(self.model).expanduser()
        name = str(source.absolute()) if source.exists() else self.model
        revision = None if source.exists() else self.pooled["revision"]
        described = loading.inspect("scorer", name, revision=revision, contaminated=True)
        for file, digest in self.pooled["digests"].items():
            if described["digests"].get(file) != digest:
                do = f"give the model by which it was fitted; it was {self.pooled['source']}"
                problem = f"is not the model of {self.scorer}: {file} differs"
                raise UserError(problem, where=self.model, do=do)
        with tempfile.TemporaryDirectory(prefix="mamushi-") as folder:
            card = Path(folder) / "card.json"
            write_json(card, described)
            model, accelerator = open_arm(card, None, None, self.pooled["precision"])
            return model, accelerator, loading.open_tokenizer(card), described["max_positions"]


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
    nothing, and where one of vectors has no ``model``."""
    try:
        scorer = trained_metadata(path)["scorer"]
    except (UserError, KeyError):
        if not path.exists():
            raise
        # Whatever it is, it may be the user's own.
        do = "give what mamushi export --to scorer wrote"
        raise UserError("is no scorer, or is damaged", where=path, do=do) from None
    if scorer["vectors"] is not None and model is None:
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
        embedder=scorer["vectors"] and Embedder(str(model), scorer["vectors"], path),
    )


def _of_words(tensors: Mapping[str, NDArray[Any]], kind: str) -> tuple[Doubles, TfidfTransformer]:
    # What was in no training text has the rarity 0, and so no part in a text's length.
    weights, rarity = np.zeros(2**BITS), np.zeros(2**BITS, np.float32)
    columns = tensors[f"{kind}.columns"]
    weights[columns], rarity[columns] = (
        tensors[f"{kind}.{name}"] for name in ("weights", "rarity")
    )
    return weights, rarity_of(rarity)
