"""Texts from two known densities that overlap: mixtures over the same components.

A component c is a topic T_c mixed with a bigram backbone B that all components share; a concept w
that follows u (or the start) has probability

    q_c(w | u) = (1 - a) B(w | u) + a T_c(w | u),        a: the topic share.

The forget density is p1(x) = sum_c pi1_c q_c(x), the retain density p2 the same with weights pi2.
In the lexical world components differ in their vocabulary: T_c(w | u) = T_c(w), and frequencies
fall as 1/rank. In the world of transitions they differ in the order of words alone: T_c(w | u) = 1
for the w that follows u in a ring of all concepts, and B and the start are uniform. Each occurrence
of a concept takes one of its synonyms at random: that, and the length, are independent of the
component and cancel in log p1(x)/p2(x), which is exact.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

Doubles = NDArray[np.float64]
SYLLABLES = tuple(onset + nucleus for onset in "bdflmnrstv" for nucleus in "aeiou")
TOPIC_SHAPE, BACKBONE_SHAPE, FLOOR = 1.0, 0.3, 1e-3
"""Shapes of the gamma variates that tilt a base distribution: the smaller, the more uneven; and
what lets every concept follow every other."""
ConceptRows = NDArray[np.int16]  # At most 5,000 concepts.


@dataclass(frozen=True)
class Mixture:
    """Both densities, of V concepts and C components: B(w | u) as ``backbone`` (V + 1, V), whose
    last row is the start; T_c(w | u) as ``topics`` (C, V + 1, V), or (C, 1, V) where it is the same
    after every u; ``weights`` (2, C). ``words`` are the synonyms, concept by concept."""

    words: tuple[str, ...]
    backbone: Doubles
    topics: Doubles
    topic_share: float
    weights: Doubles


def draw_mixture(
    vocabulary: int, weights: Doubles, topic_share: float, seed: int, world: str, synonyms: int
) -> Mixture:
    """Draw words, backbone and topics of ``vocabulary`` concepts; ``weights`` (2, C)."""
    rng, components = np.random.default_rng([seed, 0]), weights.shape[1]
    words = pseudo_words(vocabulary * synonyms, rng)
    if world == "transition":
        backbone = np.full((vocabulary + 1, vocabulary), 1 / vocabulary)
        topics = np.zeros((components, vocabulary + 1, vocabulary))
        topics[:, -1] = 1 / vocabulary
        for topic in topics:
            ring = rng.permutation(vocabulary)
            topic[ring, np.roll(ring, -1)] = 1
    else:
        zipf = 1 / np.arange(1, vocabulary + 1)
        tilt = rng.gamma(BACKBONE_SHAPE, size=(vocabulary, vocabulary)) + FLOOR
        ranks = np.argsort(rng.random((components, vocabulary)), axis=1)
        topics = (zipf[ranks] * rng.gamma(TOPIC_SHAPE, size=ranks.shape))[:, None]
        topics /= topics.sum(axis=2, keepdims=True)
        backbone = np.vstack([zipf * tilt, zipf])
        backbone /= backbone.sum(axis=1, keepdims=True)
    return Mixture(words, backbone, topics, topic_share, weights)


def pseudo_words(n: int, rng: np.random.Generator) -> tuple[str, ...]:
    """Draw ``n`` distinct pronounceable words, of as many syllables as that takes, at least two."""
    base, syllables = len(SYLLABLES), 2
    while base**syllables < n:
        syllables += 1
    codes = rng.choice(base**syllables, size=n, replace=False)
    digits = codes[:, None] // base ** np.arange(syllables) % base
    return tuple("".join(SYLLABLES[d] for d in row) for row in digits)


def draw(
    mixture: Mixture, domain: int, n: int, lengths: tuple[int, int], rng: np.random.Generator
) -> tuple[ConceptRows, NDArray[np.int64]]:
    """Draw ``n`` texts of a domain (0: forget, 1: retain), of so many words, both ends included:
    their concepts (N, longest), -1 after the end, and their components (N,)."""
    low, high = lengths
    component = _draw_by_rows(np.cumsum(mixture.weights, axis=1), np.full(n, domain), rng)
    length = rng.integers(low, high, size=n, endpoint=True)
    from_topic = rng.random((n, high)) < mixture.topic_share
    _, after_any, concepts = mixture.topics.shape
    topics = np.cumsum(mixture.topics, axis=2).reshape(-1, concepts)
    backbone = np.cumsum(mixture.backbone, axis=1)
    tokens = np.empty((n, high), dtype=np.int16)
    before = np.full(n, -1)
    for t in range(high):
        word, topical = _draw_by_rows(backbone, before, rng), from_topic[:, t]
        after = component[topical] * after_any + before[topical] % after_any
        word[topical] = _draw_by_rows(topics, after, rng)
        tokens[:, t] = before = word
    tokens[np.arange(high) >= length[:, None]] = -1
    return tokens, component


def _draw_by_rows(
    cumulative: Doubles, rows: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw from the distribution of each of ``rows`` (N,) by its ``cumulative`` sums (K, V)."""
    # By the last sum, which rounding may leave just below 1; row by row, to hold no row a draw.
    u = rng.random(len(rows)) * cumulative[rows, -1]
    drawn = np.empty(len(rows), dtype=np.int64)
    for row in np.unique(rows):
        members = rows == row
        drawn[members] = np.searchsorted(cumulative[row], u[members], side="right")
    return drawn


def log_density_ratio(mixture: Mixture, tokens: ConceptRows) -> Doubles:
    """Return log p1(x)/p2(x) in nats (N,), exactly, of tokens as from ``draw``."""
    present, a = tokens >= 0, mixture.topic_share
    concept = np.where(present, tokens, 0)
    before = np.pad(concept[:, :-1], ((0, 0), (1, 0)), constant_values=-1)
    common = (1 - a) * mixture.backbone[before, concept]
    # log q_c of each text given its length, (N, C).
    components = np.empty((len(tokens), len(mixture.topics)))
    for topic, component in zip(mixture.topics, components.T, strict=True):
        logs = np.log(common + a * topic[before % len(topic), concept])
        component[:] = np.where(present, logs, 0).sum(axis=1)
    p1, p2 = (logsumexp(components, axis=1, b=weights) for weights in mixture.weights)
    return np.asarray(p1 - p2)


def spell_texts(mixture: Mixture, tokens: ConceptRows, rng: np.random.Generator) -> list[str]:
    """Return the texts: a synonym of each concept, drawn uniformly, with a space between."""
    synonyms = len(mixture.words) // mixture.backbone.shape[1]
    spelt = tokens.astype(np.int64) * synonyms + rng.integers(synonyms, size=tokens.shape)
    return [" ".join(mixture.words[w] for w in row if w >= 0) for row in spelt]
