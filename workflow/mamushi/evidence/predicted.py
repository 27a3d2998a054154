"""What a removal would do to retrained models, foreseen without a training.

A unigram model of the texts that remain stands for the language model (``selection.unigram``): what
a removal adds to its NLL of forget and of retain texts, as shares of the *gap*, which is what it
adds to the NLL of forget texts when all of them go. It reads the held-out texts or, where nothing
is held out, the texts of each of five folds by the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mamushi.artifacts import paths
from mamushi.artifacts.domains import FORGET
from mamushi.configuration.arms import RETRAINED
from mamushi.errors import UserError
from mamushi.evaluation.crossing import first_crossing
from mamushi.evaluation.curves import read_perplexity
from mamushi.lm.tokens import TokenSet
from mamushi.selection.folds import stratified_folds
from mamushi.selection.removals import count
from mamushi.selection.unigram import Doubles, counts, nll, vocabulary

FOLDS = 5
HALF_WIDTH = 0.12
"""95% of the budgets that retraining needed for half of the gap were at most so far from the
predicted one (benchmarks/predicted.py)."""
HALF_WIDTH_MEASURED = 0.08
"""The same, of a curve through one retraining."""
ENDS = (0.02, 0.98)
"""Shares beyond which a curve's power would rest on the noise of one retraining."""

CELL = ("dataset", "model", "seed")

Positions = NDArray[np.int64]
"""Places of tokens among all of a set of texts."""


class NoPrediction(Exception):
    """Nothing can be predicted of these texts; says why."""


class Proxy:
    """The unigram models of one dataset: of ``texts``, which are trained on; ``held`` are read.

    Raises ``NoPrediction`` where texts are too few for folds, or nothing is to be recovered.
    """

    def __init__(
        self, texts: TokenSet, held: TokenSet | None, groups: NDArray[np.int64] | None = None
    ) -> None:
        self.texts = texts
        self.forget = texts.domains == FORGET
        every, size = np.ones(len(texts), dtype=bool), vocabulary(texts, *([held] if held else []))
        if held is not None:
            fold = np.full(len(texts), -1)
            self.read = [counts(held, np.ones(len(held), dtype=bool), size)]
        else:
            try:
                fold = stratified_folds(self.forget, FOLDS, 0, groups).astype(np.int64)
            except UserError as few:
                raise NoPrediction(few.what) from None
            self.read = [counts(texts, fold == part, size) for part in range(FOLDS)]
        self.fold = np.repeat(fold, texts.lengths)
        whole = counts(texts, every, size)
        own = [whole - read * (held is None) for read in self.read]
        self.full = [each.sum(axis=0) for each in own]
        self.start, gold = self._nll(self.full), self._nll([each[1] for each in own])
        self.gap = float((gold - self.start)[0])
        """Nats per token."""
        if self.gap <= 0:
            raise NoPrediction("forget texts are predicted as well without the forget texts")

    def _nll(self, trained: Iterable[Doubles]) -> Doubles:
        """Return the mean NLL of forget and of retain texts (2,)."""
        total, weight = np.zeros(2), np.zeros(2)
        for model, read in zip(trained, self.read, strict=True):
            size = read.sum(axis=1)
            total += size * [nll(model, own) if own.any() else 0.0 for own in read]
            weight += size
        return total / weight

    def positions(self, rows: Iterable[int]) -> Positions:
        """Return the tokens of the texts at these rows, in their order."""
        bounds = [np.arange(*self.texts.offsets[row : row + 2]) for row in rows]
        return np.concatenate([np.empty(0, np.int64), *bounds])

    def curve(self, steps: Iterable[Positions]) -> Doubles:
        """Return the shares of the gap by which forget and retain NLL have changed (steps, 2), when
        the tokens of each step have gone after those of the steps before it."""
        rest, found = [each.copy() for each in self.full], []
        for gone in steps:
            for part, model in enumerate(rest):
                seen = gone[self.fold[gone] != part]
                model -= np.bincount(self.texts.tokens[seen], minlength=len(model))
            found.append((self._nll(rest) - self.start) / self.gap)
        return np.array(found)


def predictions(
    proxy: Proxy, ranking: pa.Table, budgets: Sequence[float]
) -> Iterator[dict[str, Any]]:
    """Yield the rows of the table ``predicted`` at increasing budgets, from a table ``scores`` or
    ``token_scores``."""
    texts = proxy.texts
    place = {name: row for row, name in enumerate(texts.ids)}
    if "rank" in ranking.column_names:
        first = ranking.filter(pc.is_valid(ranking["rank"])).sort_by("rank")
        parts = [proxy.positions([place[name]]) for name in first["id"].to_pylist()]
        ends = [count(beta, len(parts)) for beta in budgets]
        cuts = np.cumsum([0, *map(len, parts)])[ends]
        order = np.concatenate([np.empty(0, np.int64), *parts])
    else:
        # As `highest_spans`: the first token of a text is not predicted, and none of 0 is masked.
        rows = [place[name] for name in ranking["id"].to_pylist()]
        every = np.concatenate([proxy.positions([row])[1:] for row in rows])
        score = pc.list_flatten(ranking["score"]).to_numpy()
        order = every[np.argsort(-score, kind="stable")][: int((score > 0).sum())]
        ends = [count(beta, len(every)) for beta in budgets]
        cuts = np.minimum(ends, len(order))
    steps = (order[a:b] for a, b in pairwise([0, *cuts.tolist()]))
    for beta, removed, (recovered, retain) in zip(budgets, ends, proxy.curve(steps), strict=True):
        yield {
            **{"beta": beta, "removed": removed},
            **{"recovered": float(recovered), "retain": float(retain)},
        }


def through(
    curve: Doubles, budgets: Sequence[float] | Doubles, measured: Sequence[tuple[float, float]]
) -> Doubles:
    """Return the curve (budgets,) of what is recovered, raised to the powers by which it goes
    through what retraining at some budgets has recovered, ``measured`` as (budget, share).

    From 0 to 1 as before; the power is linear between these budgets.
    """
    if not measured:
        return curve
    at, shares = np.array(sorted(measured)).T
    here = np.interp(at, budgets, curve)
    powers = np.log(np.clip(shares, *ENDS)) / np.log(np.clip(here, *ENDS))
    return np.asarray(np.clip(curve, 0, None) ** np.interp(budgets, at, powers))


def budget(curve: Doubles, budgets: Sequence[float] | Doubles, share: float) -> float | None:
    """Return the smallest budget that recovers the share; None where none below 1 does."""
    found = first_crossing(budgets, curve, share)
    return None if found is None or found >= 1 else found


def pilots(root: Path, rows: Iterable[Mapping[str, Any]]) -> dict[str, list[tuple[float, float]]]:
    """Return what retraining has measured already in a folder of results, by selector, as pairs of
    budget and share of the gap recovered, means over the seeds of ``rows`` of the table
    ``predicted``, which are of one dataset and model."""
    found: dict[str, dict[float, list[float]]] = {}
    cells = {tuple(row[name] for name in CELL): row for row in rows}
    for cell in (dict(zip(CELL, key, strict=True)) for key in cells):
        ends = [paths.under(root, paths.PERPLEXITY, **cell, arm=arm) for arm in ("beta0", "gold")]
        if not all(path.is_file() for path in ends):
            continue
        start, gold = (read_perplexity(path).nll_forget for path in ends)
        arm = RETRAINED.format(selector="*", beta="*")
        for path in sorted(root.glob(str(paths.under("", paths.PERPLEXITY, **cell, arm=arm)))):
            selector, beta = path.parts[-3], path.parts[-2].removeprefix("beta")
            share = (read_perplexity(path).nll_forget - start) / (gold - start)
            found.setdefault(selector, {}).setdefault(float(beta), []).append(float(share))
    return {
        selector: sorted((beta, float(np.mean(shares))) for beta, shares in own.items())
        for selector, own in found.items()
    }
