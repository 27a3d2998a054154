"""The set whose removal makes a unigram model of the rest predict other forget texts worst.

A language model learns a domain from many texts together, so that what one of them adds depends on
which others stay. Here the texts are removed in ``ROUNDS`` steps. With L1 and L2 the mean NLL of
forget and of retain texts by a unigram model of what remains (``selection.unigram``), each step
takes the texts x of largest

    g(x) = [L1(rest without x) - L1(rest)] - r [L2(rest without x) - L2(rest)]

where L1 is of all forget texts but x and its group, those of the contamination section among them:
a text says nothing of itself. The lists of all budgets are nested.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from mamushi.errors import UserError
from mamushi.lm.tokens import TokenSet
from mamushi.selection.pool import Pool, Scored
from mamushi.selection.unigram import PRIOR, Doubles, counts, vocabulary

READS_TOKENS = True
RETAIN_SCORES = False

ROUNDS = 64

SETTINGS: dict[str, Any] = {
    "retain_weight": {
        "type": "number",
        "minimum": 0,
        "default": 0.3,
        "description": "How much the retain texts count against the forget texts.",
    },
}


class Candidates:
    """The forget texts that may be removed, as their distinct tokens, one text after another.

    ``own`` is, of each distinct token of a text, how often the text's group has it.
    """

    def __init__(self, texts: TokenSet, rows: NDArray[np.int64], groups: NDArray[np.int64]) -> None:
        tokens = np.concatenate([texts[row] for row in rows])
        starts = np.concatenate([[0], np.cumsum(texts.lengths[rows])])
        self.matrix = csr_matrix((np.ones(len(tokens)), tokens, starts))
        self.matrix.sum_duplicates()
        self.token, self.count = self.matrix.indices, self.matrix.data
        self.length = texts.lengths[rows].astype(np.float64)
        of = np.repeat(np.arange(len(rows)), np.diff(self.matrix.indptr))
        key = groups[of] * np.int64(self.matrix.shape[1]) + self.token
        _, same = np.unique(key, return_inverse=True)
        self.own = np.bincount(same, self.count)[same]
        self.own_length = np.bincount(groups, self.length)[groups]

    def sums(self, values: Doubles) -> Doubles:
        """Return the sum of the values of each text's distinct tokens (texts,)."""
        return np.add.reduceat(values, self.matrix.indptr[:-1])

    def of(self, texts: NDArray[np.int64], size: int) -> Doubles:
        """Return how often each token stands in these texts, (size,)."""
        found = np.asarray(self.matrix[texts].sum(axis=0)).ravel()
        return np.pad(found, (0, size - len(found)))


def score(pool: Pool, settings: dict[str, Any], seed: int) -> Scored:
    """Score by g, in nats per token, of the round in which a text goes; retain texts have none.

    Raises ``UserError`` where the texts come without tokens, as with embeddings made elsewhere.
    """
    if pool.tokens is None or pool.others is None:
        do = "rank with a model, or choose another selector"
        raise UserError("greedy_unigram reads the tokens of a model, and there are none", do=do)
    size = vocabulary(pool.tokens, pool.others)
    trained = counts(pool.tokens, np.ones(len(pool.tokens), dtype=bool), size)
    read = trained + counts(pool.others, np.ones(len(pool.others), dtype=bool), size)
    members = pool.forget_by_id()
    codes = members if pool.groups is None else pool.groups[members]
    _, groups = np.unique(codes, return_inverse=True)
    texts = Candidates(pool.tokens, members, groups)
    rest, left = trained.sum(axis=0), np.ones(len(members), dtype=bool)
    order, gains = [], []
    while left.any():
        gain = np.where(left, _gains(texts, rest, read, settings["retain_weight"]), -np.inf)
        chosen = np.argsort(-gain, kind="stable")[: min(-(-len(left) // ROUNDS), left.sum())]
        order.append(chosen)
        gains.append(gain[chosen])
        left[chosen] = False
        rest -= texts.of(chosen, size)
    scores = np.full(len(pool.ids), np.nan)
    placed = members[np.concatenate(order)]
    scores[placed] = np.concatenate(gains)
    return Scored(scores, order=placed)


def _gains(texts: Candidates, rest: Doubles, read: Doubles, weight: float) -> Doubles:
    """Return g of every text (texts,), with ``rest`` (size,) remaining, of which it is a part."""
    size, total = len(rest), rest.sum()
    # A text that is gone is no part of the rest, and its value is not used.
    without = np.maximum(rest[texts.token] - texts.count, 0.0)
    loss = np.log(rest[texts.token] + PRIOR) - np.log(without + PRIOR)
    shorter = np.log(np.maximum(total - texts.length, 0.0) + PRIOR * size)
    shorter -= np.log(total + PRIOR * size)
    forget, retain = read[:, texts.token]
    mean = texts.sums((forget - texts.own) * loss) / (read[0].sum() - texts.own_length)
    other = texts.sums(retain * loss) / read[1].sum()
    return mean + shorter - weight * (other + shorter)
