"""Say what it is worth to mask the first tokens of a ranking, and show them.

The mean score of a text's tokens says how well the ranking tells the domains apart, and what the
retain texts' own tokens score says what a mask would take of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from mamushi.evaluation.masking import mask
from mamushi.evidence.confounds import TextProperties
from mamushi.evidence.verdict import judge_list, separation, share_bound
from mamushi.io.domains import FORGET
from mamushi.io.paths import beta as written
from mamushi.lm.tokens import TokenSet, text_of
from mamushi.selection.pool import Scored
from mamushi.selection.refits import WHOLE_REFIT
from mamushi.selection.removals import budget_size
from mamushi_extras.tokens.masks import (
    ScoresByText,
    counts_of,
    digest_of_spans,
    highest,
    highest_spans,
    rows_of_spans,
)

FORESEEN = "the table predicted says what masking does, where texts are held out"
TOLD = 50
"""Tokens that are shown with their scores, and"""
_FEW = 6
"""texts with what is masked in them."""


@dataclass(frozen=True)
class TokenRanking:
    """A ranking of the tokens of ``texts``: their scores, in ``refits`` those of refits with other
    seeds, and ``properties`` of the texts. ``compared`` says why it is there for comparison
    alone, if so."""

    texts: TokenSet
    scores: ScoresByText
    refits: Sequence[ScoresByText]
    properties: TextProperties
    cross_fitted: bool
    compared: str | None = None

    @cached_property
    def forget(self) -> NDArray[np.bool_]:
        """Tell which of the texts are ranked, (n,)."""
        return np.asarray(self.texts.domains == FORGET)

    @cached_property
    def rows(self) -> list[int]:
        """Return the places of the forget texts."""
        return [int(row) for row in np.flatnonzero(self.forget)]

    @cached_property
    def ranked(self) -> NDArray[np.float32]:
        """Return the scores of all tokens of the forget texts, one after another."""
        return _flat(self.scores, self.forget)

    def separates(self) -> dict[str, Any]:
        """Return how well the mean score of a text's tokens tells the domains apart."""
        n = len(self.texts)
        nothing, unfolded = np.zeros(n, np.int16), np.full(n, not self.cross_fitted)
        columns = {
            "score": _means(self.scores),
            "rank": pa.array(nothing, mask=~self.forget),
            "fold": pa.array(nothing, mask=unfolded),
        }
        refits = [(WHOLE_REFIT, i, Scored(_means(refit))) for i, refit in enumerate(self.refits)]
        return separation(pa.table(columns), refits, self.properties)

    def manifest(self, beta: float, separates: Mapping[str, Any]) -> dict[str, Any]:
        """Return what is known of the mask at one budget of a ranking that ``separates``."""
        k, ids = budget_size(beta, len(self.ranked)), self.texts.ids[self.forget].tolist()
        of_forget = [x for row in self.rows if (x := self.scores[row]) is not None]
        masked = highest(self.ranked, k)
        spans = highest_spans(of_forget, k, [self.texts.places_of(row) for row in self.rows])
        threshold = float(self.ranked[masked].min()) if masked.any() else None
        cost, stable = self._cost(threshold), self._stability(masked, k)
        share = float(masked.mean()) if masked.any() else 1.0
        of_mask = {name: value and min(value / share, 1.0) for name, value in cost.items()}
        evidence = separates, int(masked.sum()), stable, of_mask
        judged = judge_list(*evidence, compared=self.compared, unit="tokens")
        return {
            "n_forget": len(ids),
            "n_retain": len(self.texts) - len(ids),
            **counts_of(of_forget, spans),
            "threshold": threshold,
            "spans_sha256": digest_of_spans(rows_of_spans(ids, spans)),
            "spans_sha256_of": "id, start and stop of each span with spaces between them, in "
            "UTF-8, each followed by a newline",
            "verdict": judged.pop("words"),
            "judgement": judged,
            "separation": separates,
            "also_retain": {
                **of_mask,
                "of": "the share of the mask that as many retain tokens would have put there, by "
                "their scores; the bound holds with 95%, at all budgets at once",
            },
            "retain_tokens": {
                **cost,
                "of": "the share of the retain texts' own tokens that score as high as the mask",
            },
            "stability": stable,
            "expected": {"by": None, "withheld": FORESEEN},
        }

    def _cost(self, threshold: float | None) -> dict[str, float | None]:
        """Return the share of the retain texts' tokens that score ``threshold`` and above, with its
        upper bound by texts or their groups; null where they have no score."""
        retain = [x for x, forget in zip(self.scores, self.forget, strict=True) if not forget]
        scored = [x for x in retain if x is not None]
        if threshold is None or len(scored) < len(retain):
            return {"estimate": None, "upper_bound": None}
        groups = self.properties.groups
        codes = np.arange(len(self.texts)) if groups is None else groups
        by_token = np.repeat(codes[~self.forget], [len(x) for x in scored])
        share, bound = share_bound(_flat(self.scores, ~self.forget), threshold, 1.0, by_token)
        return {"estimate": share, "upper_bound": bound}

    def _stability(self, masked: NDArray[np.bool_], k: int) -> dict[str, Any]:
        """Return how many rankings there are, how many of the tokens all of them mask (``surely``),
        and what share of the mask another ranking masks; null with one ranking."""
        again = [highest(_flat(refit, self.forget), k) for refit in self.refits]
        overlaps = [float(other[masked].mean()) for other in again] if masked.any() else []
        surely = int(np.logical_and.reduce([masked, *again]).sum())
        return {
            "rankings": 1 + len(again),
            "expected_overlap": float(np.mean(overlaps)) if overlaps else None,
            "least_overlap": min(overlaps, default=None),
            "surely": surely if again else None,
            "toss_up": int(masked.sum()) - surely if again else None,
        }

    def shown(
        self, tokenizer: PreTrainedTokenizerBase, budgets: Sequence[float], verdict: str
    ) -> dict[str, Any]:
        """Return what the page shows: the tokens that carry most of the ratio, unless they are a
        comparison, and forget texts from the first to the last of the ranking in parts, each with
        the least budget that masks it. Profanity is masked."""
        n, names = len(self.ranked), [*map(written, budgets), None]
        masks = [highest(self.ranked, budget_size(beta, n)) for beta in budgets]
        least = np.where(np.any(masks, axis=0), np.argmax(masks, axis=0), len(budgets))
        places = [self.texts.places_of(row) for row in self.rows]
        by_text = np.split(least, np.cumsum([*map(len, places)])[:-1])
        order = np.argsort(-_means(self.scores)[self.rows], kind="stable")
        drawn = order[np.linspace(0, len(order) - 1, min(_FEW, len(order))).astype(int)]
        texts = []
        for place in drawn.tolist():
            ids = self.texts[self.rows[place]]
            # What is not predicted, as the first token, is not masked.
            level = np.full(len(ids), len(budgets))
            level[places[place]] = by_text[place]
            edges = [*(np.flatnonzero(np.diff(level)) + 1).tolist(), len(ids)]
            text, ends = text_of(tokenizer, ids.tolist(), edges)
            hidden, bounds = mask(text), zip([0, *ends], ends, edges, strict=False)
            parts = [[hidden[start:stop], names[level[edge - 1]]] for start, stop, edge in bounds]
            texts.append({"id": self.texts.ids[self.rows[place]], "parts": parts})
        telling = [] if self.compared else self._telling(tokenizer)
        return {"verdict": verdict, "tokens": telling, "texts": texts}

    def _telling(self, tokenizer: PreTrainedTokenizerBase) -> list[dict[str, Any]]:
        """Return the tokens of the largest sums of scores above 0 over the forget texts: mean score
        and counts in either domain."""
        predicted = [np.empty(0, np.int32)], [np.empty(0, np.int32)]
        for row, forget in enumerate(self.forget):
            predicted[0 if forget else 1].append(self.texts[row][self.texts.places_of(row)])
        of_forget, of_retain = map(np.concatenate, predicted)
        size = 1 + int(max(of_forget.max(initial=0), of_retain.max(initial=0)))
        forget, retain = (np.bincount(tokens, minlength=size) for tokens in (of_forget, of_retain))
        total = np.bincount(of_forget, self.ranked, size)
        first = np.argsort(-total, kind="stable")[:TOLD]
        return [
            {
                "token": mask(text_of(tokenizer, [token], [])[0]),
                "score": float(total[token] / forget[token]),
                "forget": int(forget[token]),
                "retain": int(retain[token]),
            }
            for token in first[total[first] > 0].tolist()
        ]


def _flat(scores: ScoresByText, inside: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Return the scores of all tokens of the texts ``inside`` (n,), one after another."""
    pairs = zip(scores, inside, strict=True)
    return np.concatenate(
        [np.empty(0, np.float32), *(x for x, here in pairs if here and x is not None)]
    )


def _means(scores: ScoresByText) -> NDArray[np.float64]:
    """Return each text's mean score (n,): 0 without a token, NaN where it is not scored."""
    means = (np.nan if x is None else x.mean() if len(x) else 0.0 for x in scores)
    return np.fromiter(means, np.float64, len(scores))
