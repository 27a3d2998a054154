"""What a removal would do to retrained models, foreseen without a training.

A unigram model of the texts that remain stands for the language model. With c(w) how often token w
stands in the texts that are trained on, V tokens in the vocabulary and a = ``PRIOR``, it gives a
token the probability

    p(w) = (c(w) + a) / (sum c + a V)

What a removal adds to its NLL of forget texts is a share of the *gap*, which is what it adds when
all of them go (docs/science/predicted.md). It reads held-out texts or, where nothing is held out,
the texts of each of five folds by the others.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mamushi.errors import UserError
from mamushi.io.domains import FORGET
from mamushi.lm.tokens import TokenSet
from mamushi.selection.arrays import Doubles
from mamushi.selection.folds import stratified_folds
from mamushi.selection.removals import budget_size

PRIOR = 0.2
"""Tokens that each of the vocabulary is seen beside those of the texts. Chosen on one dataset and
judged on another."""
FOLDS = 5
Positions = NDArray[np.int64]
"""Places of tokens among all of a set of texts."""


def token_counts(texts: TokenSet, size: int, chosen: NDArray[np.bool_] | bool = True) -> Doubles:
    """Return how often each token stands in the chosen forget and retain texts, (2, size): of those
    that count, where some do not."""
    inside = np.repeat(np.broadcast_to(chosen, len(texts)), texts.lengths) & (texts.weights > 0)
    forget = np.repeat(texts.domains == FORGET, texts.lengths)
    by_domain = (texts.tokens[inside & domain] for domain in (forget, ~forget))
    return np.array([np.bincount(tokens, minlength=size) for tokens in by_domain], np.float64)


def vocabulary_size(*texts: TokenSet) -> int:
    """Return 1 + the largest token id in any of these texts."""
    return 1 + max((int(token_set.tokens.max(initial=0)) for token_set in texts), default=0)


def log_ratio(counted: Doubles, prior: float) -> Doubles:
    """Return the log ratio in nats of each token (size,), by its counts (2, size) in both domains,
    smoothed as ``token_unigram`` says."""
    total = counted.sum(axis=1)
    share = prior * counted.sum(axis=0) / max(total.sum(), 1.0)
    seen = share > 0
    ratio = np.zeros(len(share))
    forget, retain = (np.log(c[seen] + share[seen]) for c in counted)
    ratio[seen] = forget - retain - np.log((total[0] + prior) / (total[1] + prior))
    return ratio


class Proxy:
    """The unigram models of one dataset: of ``texts``, which are trained on; ``held_out`` are read.
    Raises ``UserError`` where texts are too few for folds, or nothing is to be recovered."""

    def __init__(
        self, texts: TokenSet, held_out: TokenSet | None, groups: NDArray[np.int64] | None = None
    ) -> None:
        self.texts = texts
        size = vocabulary_size(texts, *([held_out] if held_out else []))
        counts = token_counts(texts, size)
        if held_out is not None:
            fold, trained = np.full(len(texts), -1), [counts]
            read = [token_counts(held_out, size)]
        else:
            fold = stratified_folds(texts.domains == FORGET, FOLDS, 0, groups).astype(np.int64)
            read = [token_counts(texts, size, fold == number) for number in range(FOLDS)]
            trained = [counts - of_fold for of_fold in read]
        self.fold, counted = np.repeat(fold, texts.lengths), np.flatnonzero(texts.weights > 0)
        # Of each text, of the tokens that count.
        self.positions = np.split(counted, np.searchsorted(counted, texts.offsets[1:-1]))
        # Of both domains, and what is read of forget texts.
        self.full, self.read = [both.sum(axis=0) for both in trained], [both[0] for both in read]
        self.start = self._nll(self.full)
        self.gap = self._nll([both[1] for both in trained]) - self.start
        if self.gap <= 0:
            raise UserError("forget texts are predicted as well without the forget texts")

    def _nll(self, trained: Iterable[Doubles]) -> float:
        """Return the mean NLL per token of forget texts, in nats, by models of the counts (size,)
        of tokens that they are trained on."""
        total = 0.0
        for counts, read in zip(trained, self.read, strict=True):
            if read.any():
                normalizer = np.log(counts.sum() + PRIOR * len(counts))
                mean = normalizer - read @ np.log(counts + PRIOR) / read.sum()
                total += read.sum() * float(mean)
        return float(total / sum(read.sum() for read in self.read))

    def curve(self, steps: Iterable[Positions]) -> Iterator[float]:
        """Yield the change of forget NLL as a share of the gap. Each step removes the tokens at its
        positions, after those of the steps before it."""
        remaining = [counts.copy() for counts in self.full]
        for gone in steps:
            for number, model in enumerate(remaining):
                seen = gone[self.fold[gone] != number]
                model -= np.bincount(self.texts.tokens[seen], minlength=len(model))
            yield (self._nll(remaining) - self.start) / self.gap


def predictions(
    proxy: Proxy, ranking: pa.Table, budgets: Sequence[float]
) -> Iterator[dict[str, Any]]:
    """Yield a row of the table ``predicted`` for each of the increasing budgets. The ``ranking`` is
    a table ``scores`` of texts or ``token_scores``."""
    texts = proxy.texts
    row_of = {name: row for row, name in enumerate(texts.ids)}
    if "rank" in ranking.column_names:
        first = ranking.filter(pc.is_valid(ranking["rank"])).sort_by("rank")
        tokens = [proxy.positions[row_of[name]] for name in first["id"].to_pylist()]
        ends = [budget_size(beta, len(tokens)) for beta in budgets]
        cuts = np.cumsum([0, *map(len, tokens)])[ends]
        order = np.concatenate([np.empty(0, np.int64), *tokens])
    else:
        # As `highest_spans`: of the tokens that forget texts predict, none of 0 is masked.
        forget = ranking.filter(pc.equal(ranking["domain"], FORGET))
        rows = [row_of[name] for name in forget["id"].to_pylist()]
        every = np.concatenate([texts.offsets[row] + texts.places_of(row) for row in rows])
        score = pc.list_flatten(forget["score"]).to_numpy()
        order = every[np.argsort(-score, kind="stable")][: int((score > 0).sum())]
        ends = [budget_size(beta, len(every)) for beta in budgets]
        cuts = np.minimum(ends, len(order))
    curve = proxy.curve(order[a:b] for a, b in pairwise([0, *cuts.tolist()]))
    for beta, removed, recovered in zip(budgets, ends, curve, strict=True):
        yield {"beta": beta, "removed": removed, "recovered": recovered}
