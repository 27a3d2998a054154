"""The door to torchtitan: tokens with labels, as `mamushi export SPANS --to labels` writes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from torchtitan.components.data import SampleProcessor, TextSequence


class MaskedProcessor(SampleProcessor):  # type: ignore[misc]
    """Gives torchtitan, which shifts nothing itself, the token that follows each one as its label;
    -100, its ``IGNORE_INDEX``, where that token is masked."""

    @dataclass(kw_only=True, slots=True)
    class Config(SampleProcessor.Config):  # type: ignore[misc]
        """Has no settings: the rows are tokens already."""

    def __init__(self, config: Config, *, context: Any) -> None:
        self._most = context.max_context_length

    def __call__(self, sample: Mapping[str, Any], rng: np.random.Generator) -> TextSequence | None:
        """Return the tokens of a row, cut at the context, with their labels; None of a row in
        which no token is left to be predicted."""
        tokens, labels = (
            np.asarray(sample[name], np.int64)[: self._most + 1] for name in ("input_ids", "labels")
        )
        if not (labels[1:] >= 0).any():
            return None
        return TextSequence(input_ids=tokens[:-1], labels=labels[1:])
