"""Texts from two known densities that overlap: mixtures over the same components.

A component c is a topic T_c (a distribution over words) mixed with a bigram backbone B that all
components share; a word w that follows u has probability

    q_c(w | u) = (1 - a) B(w | u) + a T_c(w),        a: the topic share,

and the first word (1 - a) B_0(w) + a T_c(w). The forget density is p1(x) = sum_c pi1_c q_c(x), the
retain density p2 the same with weights pi2. So components differ in their vocabulary, which even a
tiny model can learn, while the backbone gives it a language to learn. The length is uniform and
independent of everything else, so it cancels in log p1(x)/p2(x), which is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

SYLLABLES = tuple(onset + nucleus for onset in "bdflmnrstv" for nucleus in "aeiou")
TOPIC_SHAPE, BACKBONE_SHAPE = 1.0, 0.3
"""Shapes of the gamma variates that tilt a base distribution: the smaller, the fewer words carry
most of the probability."""
FLOOR = 1e-3
"""Added to each variate of the backbone, so that every word may follow every other."""


@dataclass(frozen=True)
class Mixture:
    """Both densities. V words, C components."""

    words: tuple[str, ...]
    first: NDArray[np.float64]
    """B_0, shape (V,)."""
    backbone: NDArray[np.float64]
    """B(w | u), shape (V, V): row u, column w."""
    topics: NDArray[np.float64]
    """T_c(w), shape (C, V)."""
    topic_share: float
    weights: NDArray[np.float64]
    """pi1 and pi2, shape (2, C)."""


def pseudo_words(n: int, rng: np.random.Generator) -> tuple[str, ...]:
    """``n`` distinct pronounceable words: as many syllables each as that takes, at least two."""
    base, syllables = len(SYLLABLES), 2
    while base**syllables < n:
        syllables += 1
    codes = rng.choice(base**syllables, size=n, replace=False)
    digits = codes[:, None] // base ** np.arange(syllables) % base
    return tuple("".join(SYLLABLES[d] for d in row) for row in digits)


def make(vocabulary: int, weights: NDArray[np.float64], topic_share: float, seed: int) -> Mixture:
    """Draw words, backbone and topics; ``weights`` of shape (2, C) are pi1 and pi2.

    Base frequencies fall as 1/rank, as in natural text, in an order of its own for each topic.
    """
    rng = np.random.default_rng([seed, 0])
    words = pseudo_words(vocabulary, rng)
    zipf = 1 / np.arange(1, vocabulary + 1)
    tilt = rng.gamma(BACKBONE_SHAPE, size=(vocabulary, vocabulary)) + FLOOR
    ranks = np.argsort(rng.random((weights.shape[1], vocabulary)), axis=1)
    topics = zipf[ranks] * rng.gamma(TOPIC_SHAPE, size=ranks.shape)
    return Mixture(
        words=words,
        first=zipf / zipf.sum(),
        backbone=_rows_sum_to_1(zipf * tilt),
        topics=_rows_sum_to_1(topics),
        topic_share=topic_share,
        weights=weights,
    )


def draw(
    mixture: Mixture, domain: NDArray[np.int64], lengths: tuple[int, int], rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """One text for each entry of ``domain`` (0: forget, 1: retain), each with a length uniform in
    ``lengths``, both ends included.

    Returns its words, shape (N, longest), -1 after its end, and its component, shape (N,).
    """
    low, high = lengths
    n = len(domain)
    component = _inverse(np.cumsum(mixture.weights, axis=1)[domain], rng)
    length = rng.integers(low, high, size=n, endpoint=True)
    from_topic = rng.random((n, high)) < mixture.topic_share
    topics = np.cumsum(mixture.topics, axis=1)
    backbone = np.cumsum(mixture.backbone, axis=1)
    tokens = np.empty((n, high), dtype=np.int64)
    tokens[:, 0] = _inverse(np.tile(np.cumsum(mixture.first), (n, 1)), rng)
    for t in range(high):
        if t > 0:
            tokens[:, t] = _inverse(backbone[tokens[:, t - 1]], rng)
        chosen = from_topic[:, t]
        tokens[chosen, t] = _inverse(topics[component[chosen]], rng)
    tokens[np.arange(high) >= length[:, None]] = -1
    return tokens, component


def log_likelihoods(mixture: Mixture, tokens: NDArray[np.int64]) -> NDArray[np.float64]:
    """log q_c of each text given its length, in nats, shape (N, C); ``tokens`` as from ``draw``."""
    present = tokens >= 0
    word = np.where(present, tokens, 0)
    common = np.empty(word.shape)
    common[:, 0] = mixture.first[word[:, 0]]
    common[:, 1:] = mixture.backbone[word[:, :-1], word[:, 1:]]
    a = mixture.topic_share
    return np.stack(
        [
            np.where(present, np.log((1 - a) * common + a * topic[word]), 0).sum(axis=1)
            for topic in mixture.topics
        ],
        axis=1,
    )


def log_density_ratio(mixture: Mixture, tokens: NDArray[np.int64]) -> NDArray[np.float64]:
    """log p1(x)/p2(x) of each text in nats, shape (N,); the posterior over components is exact."""
    components = log_likelihoods(mixture, tokens)
    p1, p2 = (logsumexp(components, axis=1, b=weights) for weights in mixture.weights)
    return np.asarray(p1 - p2, dtype=np.float64)


def spell(mixture: Mixture, tokens: NDArray[np.int64]) -> list[str]:
    """The texts: words with a space between."""
    return [" ".join(mixture.words[w] for w in row if w >= 0) for row in tokens]


def _rows_sum_to_1(table: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(table / table.sum(axis=1, keepdims=True), dtype=np.float64)


def _inverse(cumulative: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
    """One draw from each row's distribution by its cumulative sums, shape (N, V) -> (N,)."""
    # Scaled by the last sum, which rounding may leave just below 1.
    u = rng.random(len(cumulative)) * cumulative[:, -1]
    return np.asarray((cumulative <= u[:, None]).sum(axis=1), dtype=np.int64)
