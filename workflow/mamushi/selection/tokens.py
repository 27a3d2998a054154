"""Tokens that are left out of a training's loss in the place of whole texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mamushi.artifacts.domains import FORGET
from mamushi.data.groups import Codes
from mamushi.lm.tokens import TokenSet

Scores = list[NDArray[np.float32]]
"""Of each forget text, the scores of its tokens but the first, which is not predicted."""
Spans = dict[int, list[tuple[int, int]]]
"""By the place of a text: the first token of each span, and the one behind its last."""


@dataclass(frozen=True)
class TokenPool:
    """What a selector of tokens scores by.

    ``texts`` are those of both domains from which one removes, and ``groups`` (texts,) which of
    them are not independent. ``others`` are those of the contamination section, none of which is
    scored. ``ratio`` has by id the log ratio of two models, where the selector reads it.
    """

    texts: TokenSet
    others: TokenSet
    groups: Codes | None = None
    ratio: Mapping[str, NDArray[np.float32]] | None = None

    @property
    def forget(self) -> NDArray[np.int64]:
        """The places of the forget texts, (n1,)."""
        return np.flatnonzero(self.texts.domains == FORGET)


def highest_spans(scores: Sequence[NDArray[np.float32]], k: int) -> Spans:
    """Return the ``k`` tokens of highest score, as spans.

    Fewer where fewer have a score above 0: the others are as likely in the retain domain, and to
    leave them out as well would teach that they do not follow. ``scores`` are as ``Scores``, so
    that a text's spans begin at 1. Ties by place.
    """
    flat = np.concatenate([np.empty(0, np.float32), *scores])
    among_highest = np.zeros(len(flat), dtype=bool)
    among_highest[np.argsort(-flat, kind="stable")[:k]] = True
    among_highest &= flat > 0
    parts = np.split(among_highest, np.cumsum([len(each) for each in scores])[:-1])
    found: Spans = {}
    for place, own in enumerate(parts):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], own.astype(np.int8), [0]])))
        if len(edges):
            found[place] = [(int(a) + 1, int(b) + 1) for a, b in edges.reshape(-1, 2)]
    return found


def counts_of(scores: Sequence[NDArray[np.float32]], spans: Spans) -> dict[str, int]:
    """Return how many tokens could be masked, ``tokens``, how many have a score ``above_zero`` and
    are ``masked``, and of how many ``texts`` some are, or all (``whole_texts``)."""
    masked = {place: sum(stop - start for start, stop in own) for place, own in spans.items()}
    return {
        "n_texts": len(scores),
        "tokens": sum(map(len, scores)),
        "above_zero": sum(int((each > 0).sum()) for each in scores),
        "masked": sum(masked.values()),
        "texts": len(masked),
        "whole_texts": sum(len(scores[place]) == count for place, count in masked.items()),
    }
