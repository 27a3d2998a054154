"""Tokens by their NLL under a model that has not learned the domain, less that under one that has.

Score: the difference in nats. At 0 or below, a token is as likely where nobody learned the domain,
and is never masked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mamushi.io import paths
from mamushi_extras.cross_entropy.selectors import cross_entropy

if TYPE_CHECKING:
    from mamushi_extras.tokens.masks import ScoresByText, TokenPool

UNIT = "tokens"
MEASURED = paths.CROSS_ENTROPY
REFITS = False
FORESEEN = False


class Settings(cross_entropy.Settings):
    """Settings of this selector."""


def score_tokens(pool: TokenPool, settings: dict[str, Any], seed: int) -> ScoresByText:
    """Score by what was measured."""
    assert pool.measured is not None
    return pool.measured
