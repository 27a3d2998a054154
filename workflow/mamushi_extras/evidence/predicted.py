"""What a removal would do to retrained models, foreseen without a training.

A unigram model of the texts that remain stands for the language model (``unigram``): what
a removal adds to its NLL of forget texts, as a share of the *gap*, which is what it adds when all
of them go. It reads held-out texts or, where nothing is held out, the texts of each of five folds
by the others.
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
from mamushi_extras.evidence.unigram import nll, token_counts, vocabulary

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
            read = [token_counts(held_out, np.ones(len(held_out), dtype=bool), size)]
        else:
            forget = texts.domains == FORGET
            fold = stratified_folds(forget, PROXY_FOLDS, 0, groups).astype(np.int64)
            read = [token_counts(texts, fold == number, size) for number in range(PROXY_FOLDS)]
            trained = [counts - of_fold for of_fold in read]
        self.fold = np.repeat(fold, texts.lengths)
        # Of both domains, and what is read of forget texts.
        self.full, self.read = [both.sum(axis=0) for both in trained], [both[0] for both in read]
        self.start = self._nll(self.full)
        self.gap = self._nll([both[1] for both in trained]) - self.start
        if self.gap <= 0:
            raise UserError("forget texts are predicted as well without the forget texts")

    def _nll(self, trained: Iterable[Doubles]) -> float:
        """Return the mean NLL of forget texts."""
        pairs = zip(trained, self.read, strict=True)
        total = sum(read.sum() * nll(model, read) for model, read in pairs if read.any())
        return float(total / sum(read.sum() for read in self.read))

    def positions(self, row: int) -> Positions:
        """Return the positions of those tokens of the text at a ``row`` that count."""
        places = np.arange(*self.texts.offsets[row : row + 2])
        return places[self.texts.weights[places] > 0]

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
    """Yield the rows of the table ``predicted`` at increasing budgets, from a table ``scores`` or
    ``token_scores``."""
    texts = proxy.texts
    row_of = {name: row for row, name in enumerate(texts.ids)}
    if "rank" in ranking.column_names:
        first = ranking.filter(pc.is_valid(ranking["rank"])).sort_by("rank")
        tokens = [proxy.positions(row_of[name]) for name in first["id"].to_pylist()]
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
    for beta, removed, recovered in zip(budgets, ends, curve, strict=True):
        yield {"beta": beta, "removed": removed, "recovered": recovered}
