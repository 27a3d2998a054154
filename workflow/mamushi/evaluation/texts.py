"""How much a text repeats itself, without a look at meaning."""

from collections.abc import Sequence

WINDOW = 16


def repetition(tokens: Sequence[int], window: int = WINDOW) -> float:
    """Return the share of tokens that occur among the ``window`` tokens before them, from 0 to 1.

    Welleck et al. 2020 (Neural Text Generation With Unlikelihood Training), their rep/l. 0 for a
    text without tokens.
    """
    repeated = sum(t in tokens[max(0, i - window) : i] for i, t in enumerate(tokens))
    return repeated / len(tokens) if tokens else 0.0
