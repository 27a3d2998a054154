"""Tokens by the smoothed log ratio of how frequent they are in forget and in retain texts.

With c1(w), c2(w) the counts of a token w in the forget and retain texts of the other folds and of
the contamination section, n1 and n2 their sums, p(w) its share of both together, and a the prior:

    s(w) = log (c1(w) + a p(w)) / (n1 + a) - log (c2(w) + a p(w)) / (n2 + a)

the log ratio of two multinomials under one Dirichlet prior (Monroe, Colaresi and Quinn 2008). It
needs no model, and says the same of a token wherever it stands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from annotated_types import Ge

from mamushi.config.kinds import Positive, Section, key
from mamushi.io.domains import FORGET

if TYPE_CHECKING:
    from mamushi_extras.tokens.masks import ScoresByText, TokenPool

UNIT = "tokens"


class Settings(Section):
    """Settings of this selector."""

    folds: Annotated[int, Ge(2)] = key(5, "Folds, of which each text is scored by the others.")
    prior: Positive = key(
        300.0, "Tokens that it is worth: the more, the nearer are ratios of rare tokens to 0."
    )


def score_tokens(pool: TokenPool, settings: dict[str, Any], seed: int) -> ScoresByText:
    """Out-of-fold log ratios, in nats; 0 for a token that no other text has. Raises ``UserError``
    when a domain has too few texts for the folds."""
    import numpy as np

    from mamushi.selection.folds import stratified_folds
    from mamushi_extras.evidence.unigram import log_ratio, token_counts, vocabulary_size

    texts, prior = pool.texts, settings["prior"]
    fold = stratified_folds(texts.domains == FORGET, settings["folds"], seed, pool.groups)
    size = vocabulary_size(texts, pool.contamination)
    both = token_counts(pool.contamination, size) + token_counts(texts, size)
    scores: ScoresByText = [None] * len(texts)
    for number in range(settings["folds"]):
        ratio = log_ratio(both - token_counts(texts, size, fold == number), prior)
        for place in np.flatnonzero(fold == number).tolist():
            scores[place] = ratio[texts[place][texts.places_of(place)]].astype(np.float32)
    return scores
