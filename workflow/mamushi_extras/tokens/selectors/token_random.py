"""Tokens of the forget texts in uniform order: the baseline that a ranking of tokens has to beat.

Score: an independent draw from U(0, 1) by the seed, for each predicted token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mamushi.io.domains import FORGET

if TYPE_CHECKING:
    from mamushi_extras.tokens.masks import ScoresByText, TokenPool

UNIT = "tokens"
COMPARISON = "its tokens are drawn by chance"


def score_tokens(pool: TokenPool, settings: dict[str, Any], seed: int) -> ScoresByText:
    """Score s(x, t) ~ U(0, 1). The draws go by text, in the order of their ids."""
    import numpy as np

    rng, drawn = np.random.default_rng(seed), {}
    forget = np.flatnonzero(pool.texts.domains == FORGET).tolist()
    for place in sorted(forget, key=lambda place: str(pool.texts.ids[place])):
        drawn[place] = rng.random(len(pool.texts.places_of(place)), dtype=np.float32)
    return [drawn.get(place) for place in range(len(pool.texts))]
