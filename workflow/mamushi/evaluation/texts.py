"""How much a text repeats itself, and how much it is like another; without a look at meaning."""

import re
from collections.abc import Sequence

import numpy as np

WINDOW = 16
_WORDS = re.compile("[a-z0-9]+")


def repetition(tokens: Sequence[int], window: int = WINDOW) -> float:
    """Return the share of tokens that occur among the ``window`` tokens before them, from 0 to 1.

    Welleck et al. 2020 (Neural Text Generation With Unlikelihood Training), their rep/l. 0 for a
    text without tokens.
    """
    repeated = sum(t in tokens[max(0, i - window) : i] for i, t in enumerate(tokens))
    return repeated / len(tokens) if tokens else 0.0


def rouge_l(said: str, truth: str) -> float:
    """Return the F-measure of the longest common subsequence of words (Lin 2004, ROUGE-L).

    Words are runs of a-z and 0-9 in lower case, as in the package rouge-score without a stemmer.
    0 where either text has no word.
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
