"""Files that score texts without the run that fitted them.

A scorer is the sum of an ``intercept`` and a weight for every term of a text, times its tf-idf:
words in the place of vectors, and n-grams of words and of characters (Salton and Buckley, 1988); or
of vectors of a model and these n-grams. A text is scored by itself, so that its score does not
depend on which others are scored beside it.
"""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file
from sklearn.feature_extraction.text import TfidfTransformer

from mamushi.errors import UserError
from mamushi.io.files import reading, trained_metadata, write_json
from mamushi.selection.arrays import Doubles
from mamushi_curate.vectors.word_vectors import count_words
from mamushi_extras.unlabelled.screen import rarity_of
from mamushi_extras.words.ngrams import count_ngrams

KINDS = ("components", "words", "characters")
"""Of terms, as ``count_words`` and ``count_ngrams`` count them."""
VECTORS = "vectors"
BATCH_TOKENS = 16384  # Of a forward pass.


def open_embedder(
    name: str, pooled: Mapping[str, Any], scorer: Path
) -> Callable[[Sequence[str]], Doubles]:
    """Return what makes vectors (n, width) of texts by a model, a folder or an id on the hub, as a
    ``scorer`` says that they are ``pooled``: NaN of a text without tokens. Raises ``UserError`` for
    a model that is not the scorer's."""
    from mamushi.lm import loading
    from mamushi.lm.embed import embed
    from mamushi.lm.tokens import TokenSet, encode, frame_tokens, offsets_of
    from mamushi.stages._models import open_arm

    is_here = (source := Path(name).expanduser()).exists()
    place, revision = (str(source.absolute()), None) if is_here else (name, pooled["revision"])
    described = loading.inspect("scorer", place, revision=revision, contaminated=True)
    for file, digest in pooled["digests"].items():
        if described["digests"].get(file) != digest:
            do = f"give the model by which it was fitted; it was {pooled['source']}"
            raise UserError(f"is not the model of {scorer}: {file} differs", where=name, do=do)
    with tempfile.TemporaryDirectory(prefix="mamushi-") as folder:
        write_json(card := Path(folder) / "card.json", described)
        model, accelerator = open_arm(card, None, None, pooled["precision"])
        tokenizer = loading.open_tokenizer(card)
    most = min(pooled["max_length"], described["max_positions"] or pooled["max_length"])
    skips_first = pooled["skip_bos"] and bool(frame_tokens(tokenizer)[0])

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
            skip_first=skips_first,
            batch_tokens=BATCH_TOKENS,
            accelerator=accelerator,
        )
        every = np.full((len(texts), embedded.shape[1]), np.nan)
        every[filled] = embedded
        return every

    return vectors


@dataclass(frozen=True)
class Scorer:
    """What ranked a list: of each kind of terms the ``columns`` (d,) among all hashed ones, their
    weights (d,), and what weighs their counts; weights of ``vectors`` (width,) that ``embed``
    makes, if any. ``text`` and ``part`` say what was read of a row where it was fitted."""

    text: str
    part: str
    intercept: float
    terms: Mapping[str, tuple[NDArray[np.int32], Doubles, TfidfTransformer]]
    vectors: Doubles | None
    embed: Callable[[Sequence[str]], Doubles] | None

    def scores(self, texts: Sequence[str]) -> Doubles:
        """Return the score of each text (n,), an estimate of log p1/p2 in nats; NaN of one without
        a term or a token that is known."""
        total, says = np.full(len(texts), self.intercept), np.full(len(texts), bool(self.embed))
        if self.embed is not None and self.vectors is not None:
            total += self.embed(texts) @ self.vectors
        counts = dict(zip(KINDS, (count_words(texts), *count_ngrams(texts)), strict=True))
        for kind, (columns, weights, rarity) in self.terms.items():
            x = rarity.transform(counts[kind][:, columns])
            total += x @ weights
            says |= x.getnnz(axis=1) > 0
        return np.where(says, total, np.nan)


def read_scorer(path: Path, model: str | None = None) -> Scorer:
    """Read a scorer. Raises ``UserError`` for a missing or damaged file, for another one, where
    one of vectors has no ``model``, and as ``open_embedder``."""
    with reading(path, do="give what mamushi export --to scorer wrote"):
        scorer, tensors = trained_metadata(path)["scorer"], load_file(path)
        terms = {}
        for kind in (kind for kind in KINDS if f"{kind}.columns" in tensors):
            columns, weights = tensors[f"{kind}.columns"], tensors[f"{kind}.weights"]
            terms[kind] = (columns, weights, rarity_of(tensors[f"{kind}.rarity"]))
        how = (scorer["text"], scorer["part"], float(tensors["intercept"][0]))
        pooled = scorer["vectors"]
    if pooled is not None and model is None:
        do = f"name it with --model; it was {pooled['source']}"
        raise UserError("scores vectors of a model", where=path, do=do)
    embed = pooled and open_embedder(str(model), pooled, path)
    return Scorer(*how, terms, tensors.get(VECTORS), embed)
