"""A unigram model of the texts that remain, in the place of a language model trained on them.

With c(w) how often token w stands in the texts that are trained on, V tokens in the vocabulary and
a = ``PRIOR``, it gives a token the probability

    p(w) = (c(w) + a) / (sum c + a V)

What a removal does to a language model's mean NLL of a domain is foreseen by what it does to this
model's, as a share of what removing all forget texts does to it (docs/science/predicted.md).
"""

import numpy as np
from numpy.typing import NDArray

from mamushi.io.domains import FORGET
from mamushi.lm.tokens import TokenSet
from mamushi.selection.arrays import Doubles

PRIOR = 0.2
"""Tokens that each of the vocabulary is seen beside those of the texts. Chosen on one dataset and
judged on another."""


def token_counts(texts: TokenSet, chosen: NDArray[np.bool_], size: int) -> Doubles:
    """Return how often each token stands in the chosen forget and retain texts, (2, size): of those
    that count, where some do not."""
    inside = np.repeat(chosen, texts.lengths)
    if texts.weights is not None:
        inside &= texts.weights > 0
    forget = np.repeat(texts.domains == FORGET, texts.lengths)
    by_domain = (texts.tokens[inside & domain] for domain in (forget, ~forget))
    return np.array([np.bincount(tokens, minlength=size) for tokens in by_domain], np.float64)


def vocabulary(*texts: TokenSet) -> int:
    """Return 1 + the largest token of all texts."""
    return 1 + max((int(token_set.tokens.max(initial=0)) for token_set in texts), default=0)


def nll(trained: Doubles, read: Doubles) -> float:
    """Return the mean NLL per token, in nats, of ``read`` tokens by a model of ``trained`` ones.

    Both are counts by token (size,).
    """
    logarithms = np.log(trained + PRIOR)
    normalizer = np.log(trained.sum() + PRIOR * len(trained))
    return float(normalizer - read @ logarithms / read.sum())
