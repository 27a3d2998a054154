"""Texts by their influence on the NLL of other forget texts, less that on retain texts.

Score: the sum of a text's predicted tokens' influence: a long text counts for more. A text whose
training teaches most of the domain goes first; noise of the domain, which teaches nothing, last.
"""

from typing import Any

from mamushi.io import paths
from mamushi.selection.pool import Pool, Scored

MEASURED = paths.INFLUENCE
REFITS = False
FORESEEN = False


def score(pool: Pool, settings: dict[str, Any], seed: int) -> Scored:
    """Score by the column of the pool. Raises ``KeyError`` where nothing was measured."""
    return Scored(pool.columns["measured"])
