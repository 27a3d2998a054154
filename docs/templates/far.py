"""Farthest from the retain mean first: s(x) = |x - mu2|_p."""

from typing import Any

from mamushi.config.kinds import Positive, Section, key
from mamushi.selection.pool import Pool, Scored


class Settings(Section):
    """Settings of this selector."""

    order: Positive = key(2.0, "Order p of the norm.")


def score(pool: Pool, settings: dict[str, Any], seed: int) -> Scored:
    """Return s(x) of all n examples: the higher, the earlier a forget text is removed."""
    import numpy as np

    x = pool.embeddings.astype(np.float64)
    away = x - x[~pool.forget].mean(axis=0)
    return Scored(np.linalg.norm(away, ord=settings["order"], axis=1))


# What a selector may declare beside Settings:
#   DERIVES = "of"           the setting that names the selector whose result is in `pool.base`
#   RETAIN_SCORES = False    retain texts have no score, so that it can be no `removal.ratio`
#   BY_CHANCE = True         it removes a share everywhere, and so has no region
#   COMPARISON = "..."       why its lists are there for comparison alone; the words may name a
#                            setting: {of}
#   READS_TEXTS = True       it reads `pool.texts`
