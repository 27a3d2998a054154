"""How much a text repeats itself, and how much it is like another; without a look at meaning."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

WINDOW = 16
_WORDS = re.compile("[a-z0-9]+")


def repetition(tokens: Sequence[int], window: int = WINDOW) -> float:
    """Return the share of tokens that occur among the ``window`` tokens before them, from 0 to 1.

    ``rep/l = 1/T sum_t 1[x_t in x_(t-l..t-1)]``, Welleck et al. 2020 (Neural Text Generation With
    Unlikelihood Training), here of what was generated. 0 for a text without tokens.

    >>> repetition([1, 2, 1, 1])
    0.5
    """
    repeated = sum(t in tokens[max(0, i - window) : i] for i, t in enumerate(tokens))
    return repeated / len(tokens) if tokens else 0.0


def distinct(tokens: Sequence[int], n: int) -> float:
    """Return the number of different n-grams over the number of n-grams, above 0 and up to 1.

    Li et al. 2016 (A Diversity-Promoting Objective Function for Neural Conversation Models), who
    divide by tokens; divided by n-grams, 1 means that none occurs twice, at any length. 1 for a
    text without an n-gram. Compare texts of one length: long ones have smaller values.

    >>> distinct([1, 2, 1, 2], 2)
    0.6666666666666666
    """
    grams = [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]
    return len(set(grams)) / len(grams) if grams else 1.0


def rouge_l(said: str, truth: str) -> float:
    """Return the F-measure of the longest common subsequence of words (Lin 2004, ROUGE-L).

    Words are runs of a-z and 0-9 in lower case, as in the package rouge-score without a stemmer.
    0 where either text has no word.

    >>> rouge_l("the cat sat down", "the cat lay down")
    0.75
    """
    a, b = (_WORDS.findall(text.lower()) for text in (said, truth))
    numbers = {word: number for number, word in enumerate(dict.fromkeys([*a, *b]))}
    one, two = (np.array([numbers[w] for w in words], dtype=np.int64) for words in (a, b))
    longest = np.zeros(len(two) + 1, dtype=np.int64)
    for word in one:
        # The subsequence before, one more word where it is the same, or what lies to the left.
        longest[1:] = np.maximum(longest[1:], longest[:-1] + (two == word))
        np.maximum.accumulate(longest, out=longest)
    return 2 * int(longest[-1]) / (len(one) + len(two)) if len(one) and len(two) else 0.0


def edit_similarity(said: str, truth: str) -> float:
    """Return 1 - Levenshtein distance / length of the longer text, in characters: from 0 to 1.

    >>> edit_similarity("kitten", "sitting")
    0.5714285714285714
    """
    one, two = (np.frombuffer(t.encode("utf-32-le"), dtype=np.uint32) for t in (said, truth))
    steps = np.arange(len(two) + 1)
    distance = steps.copy()
    for i, character in enumerate(one):
        cheapest = np.minimum(distance[1:] + 1, distance[:-1] + (two != character))
        # Insertions: each costs 1 from whatever lies to the left.
        row = np.concatenate([[i + 1], cheapest])
        distance = np.minimum.accumulate(row - steps) + steps
    longer = max(len(one), len(two))
    return 1.0 - int(distance[-1]) / longer if longer else 1.0
