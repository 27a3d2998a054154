"""Vectors of texts in memory, as a run embedded those that a scorer was fitted to."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from mamushi.errors import UserError
from mamushi.selection.arrays import Doubles

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
