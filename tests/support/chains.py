"""Worlds whose truth is known: domains that are chains of words."""

import numpy as np
from numpy.typing import NDArray

from mamushi.lm.tokens import TokenSet, offsets_of

Doubles = NDArray[np.float64]
WORDS = 30


def token_set(texts: list[list[int]], domain: str = "forget") -> TokenSet:
    ids = np.array([f"{domain}{i}" for i in range(len(texts))], dtype=object)
    lengths = np.array([len(text) for text in texts])
    return TokenSet(
        ids,
        np.array([domain] * len(texts), dtype=object),
        np.concatenate([np.array(text, np.int32) for text in texts]),
        offsets_of(lengths),
    )


def world(kind: str, seed: int) -> tuple[Doubles, Doubles, Doubles]:
    """Transitions (WORDS, WORDS) of the forget domain, of gold, and of beta 0: ``lexical`` has two
    unigrams, ``transition`` two chains with the same frequencies of words, ``mixed`` both."""
    rng = np.random.default_rng(seed)

    def unigram() -> Doubles:
        return np.tile(rng.dirichlet(np.full(WORDS, 0.5)), (WORDS, 1))

    def cyclic(shift: int) -> Doubles:
        """A chain that goes on by ``shift`` words half of the time; its words are uniform."""
        return 0.5 * np.roll(np.eye(WORDS), shift, axis=1) + 0.5 / WORDS

    forget, retain = (
        (unigram(), unigram())
        if kind == "lexical"
        else (cyclic(1), cyclic(7))
        if kind == "transition"
        else (0.5 * cyclic(1) + 0.5 * unigram(), 0.5 * cyclic(7) + 0.5 * unigram())
    )
    return forget, retain, 0.5 * (forget + retain)


def chain(transitions: Doubles, length: int, rng: np.random.Generator) -> list[int]:
    words = [int(rng.integers(WORDS))]
    while len(words) < length:
        words.append(int(rng.choice(WORDS, p=transitions[words[-1]])))
    return words
