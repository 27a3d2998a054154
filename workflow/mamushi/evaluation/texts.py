"""How much a text repeats itself, from its tokens alone.

Both numbers know nothing of meaning: a model that was pushed too far from its language repeats
itself, or says a different token at every step, and neither needs a reader to be seen.
"""

from __future__ import annotations

from collections.abc import Sequence

WINDOW = 16


def repetition(tokens: Sequence[int], window: int = WINDOW) -> float:
    """Share of the tokens that occur among the ``window`` tokens before them, from 0 to 1.

    ``rep/l = 1/T sum_t 1[x_t in x_(t-l..t-1)]``, Welleck et al. 2020 (Neural Text Generation With
    Unlikelihood Training), here of what was generated and not of predictions along a human text;
    for greedy texts the two are the same thing. The first tokens have fewer before them; those of
    the prompt do not count. 0 for a text without tokens, where nothing repeats.

    >>> repetition([1, 2, 1, 1])
    0.5
    """
    if window < 1:
        raise ValueError("window must be 1 or more")
    repeated = sum(t in tokens[max(0, i - window) : i] for i, t in enumerate(tokens))
    return repeated / len(tokens) if tokens else 0.0


def distinct(tokens: Sequence[int], n: int) -> float:
    """Number of different n-grams over the number of n-grams, above 0 and up to 1.

    Li et al. 2016 (A Diversity-Promoting Objective Function for Neural Conversation Models). They
    divide by tokens, which bounds a text of T tokens by (T - n + 1) / T; divided by n-grams, 1
    means that none occurs twice, at any length. So a text that is shorter than n, and has no
    n-gram, gets 1: it repeats none. Long texts have smaller values than short ones; compare texts
    of one length.

    >>> distinct([1, 2, 1, 2], 2)
    0.6666666666666666
    """
    if n < 1:
        raise ValueError("n must be 1 or more")
    grams = [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]
    return len(set(grams)) / len(grams) if grams else 1.0
