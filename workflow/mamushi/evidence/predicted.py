"""What a removal would do to retrained models, foreseen without a training.

A unigram model of the texts that remain stands for the language model (``selection.unigram``): what
a removal adds to its NLL of forget and retain texts, as shares of the *gap*, which is what it adds
to that of forget texts when all of them go. It reads held-out texts or, where nothing is held out,
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
from mamushi.selection.unigram import nll, token_counts, vocabulary

PROXY_FOLDS = 5
Positions = NDArray[np.int64]
"""Places of tokens among all of a set of texts."""


class Proxy:
    """The unigram models of one dataset: of ``texts``, which are trained on; ``held_out`` are read.
    Raises ``UserError`` where texts are too few for folds, or nothing is to be recovered."""

    def __init__(
        self, texts: TokenSet, held_out: TokenSet | None, groups: NDArray[np.int64] | None = None
    ) -> None:
        self.texts = texts
        size = vocabulary(texts, *([held_out] if held_out else []))
        counts = token_counts(texts, np.ones(len(texts), dtype=bool), size)
        if held_out is not None:
            fold, trained = np.full(len(texts), -1), [counts]
            self.read = [token_counts(held_out, np.ones(len(held_out), dtype=bool), size)]
        else:
            forget = texts.domains == FORGET
            fold = stratified_folds(forget, PROXY_FOLDS, 0, groups).astype(np.int64)
            self.read = [token_counts(texts, fold == number, size) for number in range(PROXY_FOLDS)]
            trained = [counts - read for read in self.read]
        self.fold = np.repeat(fold, texts.lengths)
        self.full = [of_fold.sum(axis=0) for of_fold in trained]
        self.start, gold = self._nll(self.full), self._nll([of_fold[1] for of_fold in trained])
        self.gap = float((gold - self.start)[0])
        if self.gap <= 0:
            raise UserError("forget texts are predicted as well without the forget texts")

    def _nll(self, trained: Iterable[Doubles]) -> Doubles:
        """Return the mean NLL of forget and of retain texts (2,)."""
        total, weight = np.zeros(2), np.zeros(2)
        for model, read in zip(trained, self.read, strict=True):
            size = read.sum(axis=1)
            total += size * [nll(model, domain) if domain.any() else 0.0 for domain in read]
            weight += size
        return total / weight

    def positions(self, rows: Iterable[int]) -> Positions:
        """Return the positions of the tokens of the texts at ``rows``, in their order: of those
        that count, where some do not."""
        bounds = [np.arange(*self.texts.offsets[row : row + 2]) for row in rows]
        places = np.concatenate([np.empty(0, np.int64), *bounds])
        return places[self.texts.weights[places] > 0]

    def curve(self, steps: Iterable[Positions]) -> Doubles:
        """Return the changes of forget and retain NLL as shares of the gap, (steps, 2). Each step
        removes the tokens at its positions, after those of the steps before it."""
        remaining, changes = [counts.copy() for counts in self.full], []
        for gone in steps:
            for number, model in enumerate(remaining):
                seen = gone[self.fold[gone] != number]
                model -= np.bincount(self.texts.tokens[seen], minlength=len(model))
            changes.append((self._nll(remaining) - self.start) / self.gap)
        return np.array(changes)


def predictions(
    proxy: Proxy, ranking: pa.Table, budgets: Sequence[float]
) -> Iterator[dict[str, Any]]:
    """Yield the rows of the table ``predicted`` at increasing budgets, from a table ``scores`` or
    ``token_scores``."""
    texts = proxy.texts
    row_of = {name: row for row, name in enumerate(texts.ids)}
    if "rank" in ranking.column_names:
        first = ranking.filter(pc.is_valid(ranking["rank"])).sort_by("rank")
        tokens = [proxy.positions([row_of[name]]) for name in first["id"].to_pylist()]
        ends = [budget_size(beta, len(tokens)) for beta in budgets]
        cuts = np.cumsum([0, *map(len, tokens)])[ends]
        order = np.concatenate([np.empty(0, np.int64), *tokens])
    else:
        # As `highest_spans`: of the tokens that are predicted, none of 0 is masked.
        rows = [row_of[name] for name in ranking["id"].to_pylist()]
        every = np.concatenate([texts.offsets[row] + texts.places_of(row) for row in rows])
        score = pc.list_flatten(ranking["score"]).to_numpy()
        order = every[np.argsort(-score, kind="stable")][: int((score > 0).sum())]
        ends = [budget_size(beta, len(every)) for beta in budgets]
        cuts = np.minimum(ends, len(order))
    curve = proxy.curve(order[a:b] for a, b in pairwise([0, *cuts.tolist()]))
    for beta, removed, recovered in zip(budgets, ends, curve[:, 0].tolist(), strict=True):
        yield {"beta": beta, "removed": removed, "recovered": recovered}
