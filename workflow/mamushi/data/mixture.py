"""Texts from two known densities that overlap: mixtures over the same components.

A component c is a topic T_c mixed with a bigram backbone B that all components share; a concept w
that follows u (or the start) has probability

    q_c(w | u) = (1 - a) B(w | u) + a T_c(w | u),        a: the topic share.

The forget density is p1(x) = sum_c pi1_c q_c(x), the retain density p2 the same with weights pi2.
In the lexical world components differ in their vocabulary: T_c(w | u) = T_c(w). In the world of
transitions they differ in the order of words alone: T_c(w | u) = 1 for the w that follows u in a
ring of all concepts, B and the start are uniform, and so each word is as frequent as any other.
Each occurrence of a concept takes one of its synonyms at random. That choice, and the length, are
independent of the component and cancel in log p1(x)/p2(x), which is exact.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

SYLLABLES = tuple(onset + nucleus for onset in "bdflmnrstv" for nucleus in "aeiou")
TOPIC_SHAPE, BACKBONE_SHAPE = 1.0, 0.3
"""Shapes of the gamma variates that tilt a base distribution: the smaller, the fewer words carry
most of the probability."""
_FLOOR = 1e-3
"""Added to each variate of the backbone, so that every concept may follow every other."""
_ROWS = 2**16
"""Texts whose probabilities are in memory at once."""

ConceptRows = NDArray[np.int16]
"""Concepts, of which there are at most 5,000."""
Chains = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Backbone and topics."""


@dataclass(frozen=True)
class Mixture:
    """Both densities. V concepts, C components."""

    words: tuple[str, ...]
    """The synonyms of the first concept, then those of the second, and so on: as many of each."""
    backbone: NDArray[np.float64]
    """B(w | u), shape (V + 1, V): row u, column w. The last row, -1, is the start."""
    topics: NDArray[np.float64]
    """T_c(w | u), shape (C, V + 1, V), or (C, 1, V) where it is the same after every u."""
    topic_share: float
    weights: NDArray[np.float64]
    """pi1 and pi2, shape (2, C)."""


def pseudo_words(n: int, rng: np.random.Generator) -> tuple[str, ...]:
    """Draw ``n`` distinct pronounceable words, of as many syllables as that takes, at least two."""
    base, syllables = len(SYLLABLES), 2
    while base**syllables < n:
        syllables += 1
    codes = rng.choice(base**syllables, size=n, replace=False)
    digits = codes[:, None] // base ** np.arange(syllables) % base
    return tuple("".join(SYLLABLES[d] for d in row) for row in digits)


def make(
    vocabulary: int,
    weights: NDArray[np.float64],
    topic_share: float,
    seed: int,
    *,
    world: str = "lexical",
    synonyms: int = 1,
) -> Mixture:
    """Draw words, backbone and topics; ``weights`` of shape (2, C) are pi1 and pi2, ``vocabulary``
    is the number of concepts."""
    rng = np.random.default_rng([seed, 0])
    words = pseudo_words(vocabulary * synonyms, rng)
    chains = _rings if world == "transition" else _tilted
    backbone, topics = chains(vocabulary, weights.shape[1], rng)
    return Mixture(words, backbone, topics, topic_share, weights)


def _tilted(vocabulary: int, components: int, rng: np.random.Generator) -> Chains:
    """Return backbone and topics of the lexical world, whose frequencies fall as 1/rank."""
    zipf = 1 / np.arange(1, vocabulary + 1)
    tilt = rng.gamma(BACKBONE_SHAPE, size=(vocabulary, vocabulary)) + _FLOOR
    ranks = np.argsort(rng.random((components, vocabulary)), axis=1)
    topics = zipf[ranks] * rng.gamma(TOPIC_SHAPE, size=ranks.shape)
    backbone = np.vstack([_rows_sum_to_1(zipf * tilt), zipf / zipf.sum()])
    return backbone, _rows_sum_to_1(topics)[:, None]


def _rings(vocabulary: int, components: int, rng: np.random.Generator) -> Chains:
    """Return backbone and topics of the world of transitions."""
    backbone = np.full((vocabulary + 1, vocabulary), 1 / vocabulary)
    topics = np.zeros((components, vocabulary + 1, vocabulary))
    topics[:, -1] = 1 / vocabulary
    for topic in topics:
        ring = rng.permutation(vocabulary)
        topic[ring, np.roll(ring, -1)] = 1
    return backbone, topics


def draw(
    mixture: Mixture,
    domain: NDArray[np.int64],
    lengths: tuple[int, int],
    rng: np.random.Generator,
    *,
    log_uniform: bool = False,
) -> tuple[ConceptRows, NDArray[np.int64]]:
    """Draw a text for each entry of ``domain`` (0: forget, 1: retain), each with a length in
    ``lengths``, both ends included: uniform, or a whole length whose logarithm is.

    Returns its concepts, shape (N, longest), -1 after its end, and its component, shape (N,).
    """
    low, high = lengths
    n = len(domain)
    component = _inverse(np.cumsum(mixture.weights, axis=1), domain, rng)
    if log_uniform:
        spread = np.floor(low * ((high + 1) / low) ** rng.random(n))
        length = np.minimum(spread, high).astype(np.int64)  # Rounding may reach high + 1.
    else:
        length = rng.integers(low, high, size=n, endpoint=True)
    from_topic = rng.random((n, high), dtype=np.float64) < mixture.topic_share
    after_any = mixture.topics.shape[1]
    topics = np.cumsum(mixture.topics, axis=2).reshape(-1, mixture.topics.shape[2])
    backbone = np.cumsum(mixture.backbone, axis=1)
    tokens = np.empty((n, high), dtype=np.int16)
    before = np.full(n, -1, dtype=np.int16)
    for t in range(high):
        tokens[:, t] = _inverse(backbone, before, rng)
        topical = from_topic[:, t]
        after = component[topical] * after_any + before[topical].astype(np.int64) % after_any
        tokens[topical, t] = _inverse(topics, after, rng)
        before = tokens[:, t]
    tokens[np.arange(high) >= length[:, None]] = -1
    return tokens, component


def log_density_ratio(mixture: Mixture, tokens: ConceptRows) -> NDArray[np.float64]:
    """Return log p1(x)/p2(x) in nats (N,), exactly, of tokens as from ``draw``."""
    ratio, a = np.empty(len(tokens)), mixture.topic_share
    for start in range(0, len(tokens), _ROWS):
        rows = tokens[start : start + _ROWS]
        present = rows >= 0
        concept = np.where(present, rows, 0)
        before = np.pad(concept[:, :-1], ((0, 0), (1, 0)), constant_values=-1)
        common = (1 - a) * mixture.backbone[before, concept]
        # log q_c of each text given its length, (N, C).
        components = np.empty((len(rows), len(mixture.topics)))
        for topic, component in zip(mixture.topics, components.T, strict=True):
            logs = np.log(common + a * topic[before % len(topic), concept])
            component[:] = np.where(present, logs, 0).sum(axis=1)
        p1, p2 = (logsumexp(components, axis=1, b=weights) for weights in mixture.weights)
        ratio[start : start + _ROWS] = p1 - p2
    return ratio


def spell(mixture: Mixture, tokens: ConceptRows, rng: np.random.Generator) -> Iterator[str]:
    """Yield the texts: a synonym of each concept, drawn uniformly, with a space between."""
    synonyms = len(mixture.words) // mixture.backbone.shape[1]
    for start in range(0, len(tokens), _ROWS):
        rows = tokens[start : start + _ROWS].astype(np.int64)
        spelt = rows * synonyms + rng.integers(synonyms, size=rows.shape)
        yield from (" ".join(mixture.words[w] for w in row if w >= 0) for row in spelt)


def _rows_sum_to_1(table: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(table / table.sum(axis=1, keepdims=True), dtype=np.float64)


def _inverse(
    cumulative: NDArray[np.float64], rows: NDArray[np.integer[Any]], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw for each of ``rows`` (N,) from that row's distribution by its ``cumulative`` sums,
    shape (K, V)."""
    # Scaled by the last sum, which rounding may leave just below 1.
    u = rng.random(len(rows)) * cumulative[rows, -1]
    drawn = np.empty(len(rows), dtype=np.int64)
    # Row by row: a row for each draw would take a thousand times the memory of the draws.
    order = np.argsort(rows, kind="stable")
    ends = np.flatnonzero(np.diff(rows[order], append=np.iinfo(np.int64).min)) + 1
    start = 0
    for end in ends.tolist():
        members = order[start:end]
        drawn[members] = np.searchsorted(cumulative[rows[members[0]]], u[members], side="right")
        start = end
    return drawn
