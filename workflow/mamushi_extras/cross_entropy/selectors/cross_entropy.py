"""Texts by the NLL under a model that has not learned the domain, less that under one that has.

Score: the sum of a text's predicted tokens' differences, in nats: how much better the domain's
model foresees this text. Of a mixture with a share pi of forget texts and a density ratio r it is
log(1 + pi (r - 1)) (Moore and Lewis 2010): it ranks as r does, on a scale of its own.
"""

from typing import Any

from mamushi.config.kinds import Name, Section, key
from mamushi.io import paths
from mamushi.selection.pool import Pool, Scored

MEASURED = paths.CROSS_ENTROPY
REFITS = False
FORESEEN = False


class Settings(Section):
    """Settings of this selector."""

    judge: Name | None = key(None, "The model that is asked in the place of the ranked one.")


def score(pool: Pool, settings: dict[str, Any], seed: int) -> Scored:
    """Score by the columns of the pool. Raises ``KeyError`` where nothing was measured."""
    return Scored(pool.columns["measured"], fold=pool.columns.get("fold"))
