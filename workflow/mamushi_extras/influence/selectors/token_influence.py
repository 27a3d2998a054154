"""Tokens by their influence on the NLL of other forget texts, less that on retain texts.

Score: what a step of training on this token alone would take off the mean NLL of the
targets. Below 0 it harms forget texts, or helps retain texts more, and is never masked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mamushi.io import paths

if TYPE_CHECKING:
    from mamushi_extras.tokens.masks import ScoresByText, TokenPool

UNIT = "tokens"
MEASURED = paths.INFLUENCE
REFITS = False
FORESEEN = False


def score_tokens(pool: TokenPool, settings: dict[str, Any], seed: int) -> ScoresByText:
    """Return the influence that an earlier stage measured."""
    assert pool.measured is not None
    return pool.measured
