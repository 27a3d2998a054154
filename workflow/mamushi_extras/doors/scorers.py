"""Files that score texts without the run that fitted them.

A selector is a sum of parts, each a weight for every feature of a text: tf-idf of hashed words,
n-grams of words or of characters (Salton and Buckley, 1988), or vectors of a model. A text is
scored by itself, so that its score does not depend on which others are scored beside it.
"""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer

from mamushi.errors import UserError
from mamushi.io.files import trained_metadata
from mamushi.selection.arrays import Doubles
from mamushi_curate.vectors.word_vectors import count_words
from mamushi_extras.unlabelled.screen import rarity_of
from mamushi_extras.words.ngrams import count_ngrams

VECTORS = "vectors"
UNITS, COMPONENTS = OF_WORDS = ("units", "components")
"""Words, and the words again, weighed as the vectors that are made of them."""
WORDS, CHARACTERS = NGRAMS = ("words", "characters")
BATCH_TOKENS = 16384
"""Tokens of a forward pass."""


def open_embedder(
    name: str, pooled: Mapping[str, Any], scorer: Path
) -> Callable[[Sequence[str]], Doubles]:
    """Return what makes vectors (n, width) of texts by a model, a folder or an id on the hub, as a
    ``scorer`` says that they are ``pooled``: NaN of a text without tokens. Raises ``UserError`` for
    a model that is not the scorer's."""
    from mamushi.io.files import write_json
    from mamushi.lm import loading
    from mamushi.lm.embed import embed
    from mamushi.lm.tokens import TokenSet, encode, frame, offsets_of
    from mamushi.stages._models import open_arm

    source = Path(name).expanduser()
    place = str(source.absolute()) if source.exists() else name
    revision = None if source.exists() else pooled["revision"]
    described = loading.inspect("scorer", place, revision=revision, contaminated=True)
    for file, digest in pooled["digests"].items():
        if described["digests"].get(file) != digest:
            do = f"give the model by which it was fitted; it was {pooled['source']}"
            raise UserError(f"is not the model of {scorer}: {file} differs", where=name, do=do)
    with tempfile.TemporaryDirectory(prefix="mamushi-") as folder:
        card = Path(folder) / "card.json"
        write_json(card, described)
        model, accelerator = open_arm(card, None, None, pooled["precision"])
        tokenizer = loading.open_tokenizer(card)
    most = min(pooled["max_length"], described["max_positions"] or pooled["max_length"])

    def vectors(texts: Sequence[str]) -> Doubles:
        ids = [*encode(tokenizer, texts, most)]
        lengths = np.array([*map(len, ids)], np.int64)
        filled = lengths > 0
        numbers = np.flatnonzero(filled).astype(str).astype(object)
        tokens = np.array([token for row in ids for token in row], np.int32)
        embedded = embed(
            model,
            TokenSet(numbers, numbers, tokens, offsets_of(lengths[filled])),
            pooling=pooled["pooling"],
            layer=pooled["layer"],
            skip_first=pooled["skip_bos"] and bool(frame(tokenizer)[0]),
            batch_tokens=BATCH_TOKENS,
            accelerator=accelerator,
        )
        every = np.full((len(texts), embedded.shape[1]), np.nan)
        every[filled] = embedded
        return every

    return vectors


@dataclass(frozen=True)
class Scorer:
    """A selector: an ``intercept``, ``weights`` of ``vectors`` (d,), which ``embed`` makes, and by
    kind of words which of them have a weight, these, and what weighs their counts. ``text`` and
    ``part`` say what was read of a row where it was fitted."""

    text: str
    part: str
    intercept: float
    words: Mapping[str, tuple[NDArray[np.int32], Doubles, TfidfTransformer]]
    vectors: Doubles | None
    embed: Callable[[Sequence[str]], Doubles] | None

    def scores(self, texts: Sequence[str]) -> Doubles:
        """Return the score of each text (n,), an estimate of log p1/p2 in nats; NaN of one without
        a word or a token that is known."""
        total = np.full(len(texts), self.intercept)
        if self.embed is not None and self.vectors is not None:
            total += self.embed(texts) @ self.vectors
        says = np.full(len(texts), self.embed is not None)
        counts: dict[str, sparse.csr_matrix] = {}
        if {*NGRAMS} & self.words.keys():
            counts |= zip(NGRAMS, count_ngrams(texts), strict=True)
        if {*OF_WORDS} & self.words.keys():
            counts |= dict.fromkeys(OF_WORDS, count_words(texts))
        for kind, (columns, weights, rarity) in self.words.items():
            x = rarity.transform(counts[kind][:, columns])
            total += x @ weights
            says |= x.getnnz(axis=1) > 0
        return np.where(says, total, np.nan)


def read_scorer(path: Path, model: str | None = None) -> Scorer:
    """Read a scorer. Raises ``UserError`` for a missing or damaged file, for one that scores
    nothing, where one of vectors has no ``model``, and as ``open_embedder``."""
    try:
        scorer = trained_metadata(path)["scorer"]
    except (UserError, KeyError):
        if not path.exists():
            raise
        # Whatever it is, it may be the user's own.
        do = "give what mamushi export --to scorer wrote"
        raise UserError("is no scorer, or is damaged", where=path, do=do) from None
    pooled, tensors = scorer["vectors"], load_file(path)
    if pooled is not None and model is None:
        do = f"name it with --model; it was {pooled['source']}"
        raise UserError("scores vectors of a model", where=path, do=do)
    kinds = [kind for kind in (*OF_WORDS, *NGRAMS) if f"{kind}.columns" in tensors]
    words = {}
    for kind in kinds:
        columns, weights = tensors[f"{kind}.columns"], tensors[f"{kind}.weights"]
        words[kind] = (columns, weights, rarity_of(tensors[f"{kind}.rarity"]))
    return Scorer(
        text=scorer["text"],
        part=scorer["part"],
        intercept=float(tensors["intercept"][0]),
        words=words,
        vectors=tensors.get(f"{VECTORS}.weights"),
        embed=pooled and open_embedder(str(model), pooled, path),
    )
