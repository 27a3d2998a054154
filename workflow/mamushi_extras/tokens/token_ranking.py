"""Say what it is worth to mask the first tokens of a ranking, and show them.

The mean score of a text's tokens says how well the ranking tells the domains apart, and what the
retain texts' own tokens score says what a mask would take of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from mamushi.evaluation.masking import mask
from mamushi.evidence.confounds import TextProperties
from mamushi.evidence.judgement import judge_list, separation
from mamushi.evidence.verdict import share_bound
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

    @property
    def forget(self) -> NDArray[np.bool_]:
        """Tell which of the texts are ranked, (n,)."""
        return np.asarray(self.texts.domains == FORGET)

    def of_forget(self) -> list[NDArray[np.float32]]:
        """Return the scores of each forget text's tokens."""
        pairs = zip(self.scores, self.forget, strict=True)
        return [text_scores for text_scores, here in pairs if here and text_scores is not None]

    def flat(
        self, inside: NDArray[np.bool_], scores: ScoresByText | None = None
    ) -> NDArray[np.float32]:
        """Return the scores of all tokens of the texts ``inside`` (n,), one after another."""
        pairs = zip(scores or self.scores, inside, strict=True)
        inside_scores = (
            text_scores for text_scores, here in pairs if here and text_scores is not None
        )
        return np.concatenate([np.empty(0, np.float32), *inside_scores])

    def separates(self) -> dict[str, Any]:
        """Return how well the mean score of a text's tokens tells the domains apart."""
        nothing, n = np.zeros(len(self.texts), np.int16), len(self.texts)
        columns = {
            "score": _means(self.scores),
            "rank": pa.array(nothing, mask=~self.forget),
            "fold": pa.array(nothing, mask=np.full(n, not self.cross_fitted)),
        }
        refits = [(WHOLE_REFIT, i, Scored(_means(refit))) for i, refit in enumerate(self.refits)]
        return separation(pa.table(columns), refits, self.properties)

    def manifest(self, beta: float, separates: Mapping[str, Any]) -> dict[str, Any]:
        """Return what is known of the mask at one budget of a ranking that ``separates``."""
        flat, forget_scores = self.flat(self.forget), self.of_forget()
        k = budget_size(beta, len(flat))
        places = [self.texts.places_of(row) for row in np.flatnonzero(self.forget).tolist()]
        masked, spans = highest(flat, k), highest_spans(forget_scores, k, places)
        threshold = float(flat[masked].min()) if masked.any() else None
        cost, stable = self._cost(threshold), self._stability(masked, k)
        share = float(masked.mean()) if masked.any() else 1.0
        parts = {name: value and min(value / share, 1.0) for name, value in cost.items()}
        evidence = separates, int(masked.sum()), stable, parts
        judged = judge_list(*evidence, compared=self.compared, unit="tokens")
        ids = self.texts.ids[self.forget].tolist()
        return {
            "n_forget": len(ids),
            "n_retain": len(self.texts) - len(ids),
            **counts_of(forget_scores, spans),
            "threshold": threshold,
            "spans_sha256": digest_of_spans(rows_of_spans(ids, spans)),
            "spans_sha256_of": "id, start and stop of each span with spaces between them, in "
            "UTF-8, each followed by a newline",
            "verdict": judged.pop("words"),
            "judgement": judged,
            "separation": separates,
            "also_retain": {
                **parts,
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
        retain = ~self.forget
        if threshold is None or any(self.scores[place] is None for place in np.flatnonzero(retain)):
            return {"estimate": None, "upper_bound": None}
        groups = (
            np.arange(len(retain)) if self.properties.groups is None else self.properties.groups
        )
        sizes = [0 if text_scores is None else len(text_scores) for text_scores in self.scores]
        codes = np.repeat(groups, sizes)[np.repeat(retain, sizes)]
        share, bound = share_bound(self.flat(retain), threshold, 1.0, codes)
        return {"estimate": share, "upper_bound": bound}

    def _stability(self, masked: NDArray[np.bool_], k: int) -> dict[str, Any]:
        """Return how many rankings there are, how many of the tokens all of them mask (``surely``),
        and what share of the mask another ranking masks; null with one ranking."""
        refit_masks = [highest(self.flat(self.forget, refit), k) for refit in self.refits]
        overlaps = (
            [float(refit_mask[masked].mean()) for refit_mask in refit_masks] if masked.any() else []
        )
        surely = int(np.logical_and.reduce([masked, *refit_masks]).sum())
        return {
            "rankings": 1 + len(refit_masks),
            "expected_overlap": float(np.mean(overlaps)) if overlaps else None,
            "least_overlap": min(overlaps, default=None),
            "surely": surely if refit_masks else None,
            "toss_up": int(masked.sum()) - surely if refit_masks else None,
        }

    def shown(
        self, tokenizer: PreTrainedTokenizerBase, budgets: Sequence[float], verdict: str
    ) -> dict[str, Any]:
        """Return what the page shows: the tokens that carry most of the ratio, unless they are a
        comparison, and forget texts from the first to the last of the ranking in parts, each with
        the least budget that masks it. Profanity is masked."""
        flat, places = self.flat(self.forget), np.flatnonzero(self.forget)
        least = np.full(len(flat), len(budgets))
        for place in reversed(range(len(budgets))):
            least[highest(flat, budget_size(budgets[place], len(flat)))] = place
        by_text = np.split(
            least, np.cumsum([len(text_scores) for text_scores in self.of_forget()])[:-1]
        )
        order = np.argsort(-_means(self.scores)[places], kind="stable")
        drawn = order[np.linspace(0, len(order) - 1, min(_FEW, len(order))).astype(int)]
        names = [*map(written, budgets), None]
        texts = []
        for place in drawn.tolist():
            ids = self.texts[places[place]]
            # What is not predicted, as the first token, is not masked.
            level = np.full(len(ids), len(budgets))
            level[self.texts.places_of(places[place])] = by_text[place]
            edges = [*(np.flatnonzero(np.diff(level)) + 1).tolist(), len(ids)]
            text, ends = text_of(tokenizer, ids.tolist(), edges)
            hidden, starts = mask(text), [0, *ends]
            parts = [
                [hidden[a:b], names[level[edge - 1]]]
                for a, b, edge in zip(starts, ends, edges, strict=False)
            ]
            texts.append({"id": self.texts.ids[places[place]], "parts": parts})
        telling = [] if self.compared else self._telling(tokenizer)
        return {"verdict": verdict, "tokens": telling, "texts": texts}

    def _telling(self, tokenizer: PreTrainedTokenizerBase) -> list[dict[str, Any]]:
        """Return the tokens of the largest sums of scores above 0 over the forget texts: mean score
        and counts in either domain."""
        behind = np.ones(len(self.texts.tokens), dtype=bool)
        behind[self.texts.offsets[:-1][self.texts.lengths > 0]] = False
        behind &= self.texts.weights is None or self.texts.weights > 0
        forget = np.repeat(self.forget, self.texts.lengths)
        predicted = [self.texts.tokens[behind & of] for of in (forget, ~forget)]
        size = 1 + max(int(tokens.max(initial=0)) for tokens in predicted)
        counts = [np.bincount(tokens, minlength=size) for tokens in predicted]
        total = np.bincount(predicted[0], self.flat(self.forget), size)
        first = np.argsort(-total, kind="stable")[:TOLD]
        return [
            {
                "token": mask(text_of(tokenizer, [token], [])[0]),
                "score": float(total[token] / counts[0][token]),
                "forget": int(counts[0][token]),
                "retain": int(counts[1][token]),
            }
            for token in first[total[first] > 0].tolist()
        ]


def _means(scores: ScoresByText) -> NDArray[np.float64]:
    """Return each text's mean score (n,): 0 without a token, NaN where it is not scored."""
    means = (
        np.nan if text_scores is None else text_scores.mean() if len(text_scores) else 0.0
        for text_scores in scores
    )
    return np.fromiter(means, np.float64, len(scores))
