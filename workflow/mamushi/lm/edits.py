"""Texts to train on, edited: weighed, or with spans of them left out of the loss."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mamushi.errors import UserError
from mamushi.lm.tokens import TokenSet

Span = tuple[int, int]


def weighed(texts: TokenSet, weights: Mapping[str, float]) -> TokenSet:
    """Weigh every token of a text as its id in ``weights`` says; of others by 1. Raises
    ``UserError`` for an id that is not among the texts."""
    by_text = np.ones(len(texts), np.float32)
    by_text[_rows(texts, weights)] = [*weights.values()]
    return replace(texts, weights=np.repeat(by_text, texts.lengths))


def masked(texts: TokenSet, spans: Mapping[str, Sequence[Span]]) -> TokenSet:
    """Leave the tokens from start to before stop of each span to be read and not predicted.

    Raises ``UserError`` for an id that is not among the texts, and a span beyond the end of one.
    """
    counted = np.ones(len(texts.tokens), np.float32)
    for name, row in zip(spans, _rows(texts, spans), strict=True):
        begin, end = texts.offsets[row], texts.offsets[row + 1]
        for start, stop in spans[name]:
            if not 0 <= start < stop <= end - begin:
                raise UserError(
                    f"tokens {start} to {stop} of {name!r}, which has {end - begin}",
                    do="make the spans from the same tokens",
                )
            counted[begin + start : begin + stop] = 0
    return replace(texts, weights=counted)


def mass(texts: TokenSet) -> NDArray[np.float64]:
    """Return the mean weight of each text's predicted tokens (texts,): 1 where none is weighed. A
    training takes as many steps as for so many texts, so that each token is trained on as often,
    times its weight, whatever else has been removed."""
    predicted = np.maximum(texts.lengths - 1, 0)
    means: NDArray[np.float64] = texts.counted / np.maximum(predicted, 1)
    return np.where(predicted > 0, means, 1.0)


def _rows(texts: TokenSet, names: Collection[str]) -> list[int]:
    place = {name: row for row, name in enumerate(texts.ids)}
    if missing := [name for name in names if name not in place]:
        raise UserError(
            f"{missing[0]!r} is not among the texts to train on",
            do="use what was made from this dataset",
        )
    return [place[name] for name in names]
