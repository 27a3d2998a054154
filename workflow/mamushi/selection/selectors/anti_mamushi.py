"""Another selector upside down: s(x) = -s_of(x), the sanity check of its direction.

Paper, Appendix "Reverse Mamushi": removes the examples with the smallest density ratio first.
"""

from mamushi.config.kinds import Section, key
from mamushi.selection.pool import Pool, Scored

DERIVES = "of"
"""The setting that names the selector whose scores it needs."""
COMPARISON = "the ranking by {of} upside down"


class Settings(Section):
    """Settings of this selector."""

    of: str = key("mamushi", "The selector whose scores are negated.")


def score(pool: Pool, settings: object, seed: int) -> Scored:
    """Score s(x) = -s_of(x); the folds are those of the other selector."""
    if pool.base is None:
        raise ValueError("anti_mamushi needs the scores of another selector")
    return Scored(-pool.base.scores, fold=pool.base.fold)
