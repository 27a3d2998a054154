"""Say what it is worth to mask the first tokens of a ranking, and show them.

The mean score of a text's tokens says how well the ranking tells the domains apart, and what the
retain texts' own tokens score says what a mask would take of them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from mamushi.data.labels import TextProperties
from mamushi.evaluation.masking import mask
from mamushi.evidence.verdict import judge_list, separation, share_bound
from mamushi.io.domains import FORGET
from mamushi.io.paths import beta as written
from mamushi.lm.tokens import TokenSet
from mamushi.selection.pool import Scored
from mamushi.selection.refits import WHOLE_REFIT
from mamushi.selection.removals import budget_size
from mamushi_extras.tokens.masks import (
    ScoresByText,
    digest_of_spans,
    highest,
    highest_spans,
    rows_of_spans,
)

FORESEEN = "the table predicted says what masking does, where texts are held out"
MOST_TOKENS = 50
"""Tokens that are shown with their scores, and"""
MOST_TEXTS = 6
"""texts with what is masked in them."""


class TokenRanking:
    """A ranking of the tokens of ``texts``: their scores, in ``refits`` those of refits with other
    seeds, and ``properties`` of the texts. ``compared`` says why it is there for comparison
    alone, if so."""

    def __init__(
        self,
        texts: TokenSet,
        scores: ScoresByText,
        refits: Sequence[ScoresByText],
        properties: TextProperties,
        cross_fitted: bool,
        compared: str | None = None,
    ) -> None:
        self.texts, self.scores, self.refits = texts, scores, refits
        self.properties, self.cross_fitted, self.compared = properties, cross_fitted, compared
        self.forget = np.asarray(texts.domains == FORGET)
        self.rows = np.flatnonzero(self.forget).tolist()
        self.places = [texts.places_of(row) for row in self.rows]
        self.ranked = _flat(scores, self.forget)

    def separates(self) -> dict[str, Any]:
        """Return how well the mean score of a text's tokens tells the domains apart."""
        n, means = len(self.texts), _means(self.scores)
        fold = pa.array(np.zeros(n, np.int16), mask=np.full(n, not self.cross_fitted))
        rank = pa.array(np.zeros(n, np.int16), mask=~self.forget)
        refits = [(WHOLE_REFIT, i, Scored(_means(refit))) for i, refit in enumerate(self.refits)]
        columns = pa.table({"score": means, "rank": rank, "fold": fold})
        return separation(columns, refits, self.properties)

    def manifest(self, beta: float, separates: Mapping[str, Any]) -> dict[str, Any]:
        """Return what is known of the mask at one budget of a ranking that ``separates``.

        ``retain_tokens`` is the share of the retain texts' tokens that score as high as the mask,
        with its upper bound by texts or their groups; ``also_retain`` the share of the mask that as
        many of them would have put there. Both are null where a retain text has no score.
        """
        k, ids = budget_size(beta, len(self.ranked)), self.texts.ids[self.forget].tolist()
        scores = [self.scores[row] for row in self.rows]
        spans = highest_spans([x for x in scores if x is not None], k, self.places)
        masked = highest(self.ranked, k)
        threshold = float(self.ranked[masked].min()) if masked.any() else None
        cost, stable = self._cost(threshold), self._stability(masked, k)
        share = float(masked.mean()) if masked.any() else 1.0
        of_mask = {name: value and min(value / share, 1.0) for name, value in cost.items()}
        evidence = separates, int(masked.sum()), stable, of_mask
        judged = judge_list(*evidence, compared=self.compared, unit="tokens")
        return {
            "n_forget": len(ids),
            "n_retain": len(self.texts) - len(ids),
            "tokens": len(self.ranked),
            "masked": int(masked.sum()),
            "texts": len(spans),
            "threshold": threshold,
            "spans_sha256": digest_of_spans(rows_of_spans(ids, spans)),
            "verdict": judged.pop("words"),
            "judgement": judged,
            "separation": separates,
            "also_retain": of_mask,
            "retain_tokens": cost,
            "stability": stable,
            "expected": {"by": None, "withheld": FORESEEN},
        }

    def _cost(self, threshold: float | None) -> dict[str, float | None]:
        scored = [self.scores[row] for row in np.flatnonzero(~self.forget)]
        counts = [len(x) for x in scored if x is not None]
        if threshold is None or len(counts) < len(scored):
            return {"estimate": None, "upper_bound": None}
        groups = self.properties.groups
        codes = np.arange(len(self.texts)) if groups is None else groups
        by_token = np.repeat(codes[~self.forget], counts)
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

    def shown(self, tokenizer: PreTrainedTokenizerBase, budgets: Sequence[float]) -> dict[str, Any]:
        """Return what the page shows: the tokens that carry most of the ratio, unless they are a
        comparison, and forget texts from the first to the last of the ranking in parts, each with
        the least budget that masks it. Profanity is masked."""
        n, names = len(self.ranked), [*map(written, budgets), None]
        masks = [highest(self.ranked, budget_size(beta, n)) for beta in budgets]
        least = np.where(np.any(masks, axis=0), np.argmax(masks, axis=0), len(budgets))
        by_text = np.split(least, np.cumsum([*map(len, self.places)])[:-1])
        order = np.argsort(-_means(self.scores)[self.rows], kind="stable")
        drawn = order[np.linspace(0, len(order) - 1, min(MOST_TEXTS, len(order))).astype(int)]
        texts = []
        for place in drawn.tolist():
            ids = self.texts[self.rows[place]]
            # What is not predicted, as the first token, is not masked.
            level = np.full(len(ids), len(budgets))
            level[self.places[place]] = by_text[place]
            edges = [*(np.flatnonzero(np.diff(level)) + 1).tolist(), len(ids)]
            text, ends = text_of(tokenizer, ids.tolist(), edges)
            hidden, bounds = mask(text), zip([0, *ends], ends, edges, strict=False)
            spans = [[hidden[start:stop], names[level[edge - 1]]] for start, stop, edge in bounds]
            texts.append({"id": self.texts.ids[self.rows[place]], "parts": spans})
        return {"tokens": [] if self.compared else self._telling(tokenizer), "texts": texts}

    def _telling(self, tokenizer: PreTrainedTokenizerBase) -> list[dict[str, Any]]:
        """Return the tokens of the largest sums of scores above 0 over the forget texts: mean score
        and counts in either domain."""
        of_forget, of_retain = (
            np.concatenate(
                [np.empty(0, np.int32)]
                + [
                    self.texts[row][self.texts.places_of(row)]
                    for row in np.flatnonzero(inside).tolist()
                ]
            )
            for inside in (self.forget, ~self.forget)
        )
        size = 1 + int(max(of_forget.max(initial=0), of_retain.max(initial=0)))
        forget, retain = (np.bincount(tokens, minlength=size) for tokens in (of_forget, of_retain))
        total = np.bincount(of_forget, self.ranked, size)
        first = np.argsort(-total, kind="stable")[:MOST_TOKENS]
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


def text_of(
    tokenizer: PreTrainedTokenizerBase, ids: Sequence[int], edges: Sequence[int]
) -> tuple[str, list[int]]:
    """Return the text of some tokens and, for each of ``edges``, where in it the text of so many
    first tokens ends. A character of several tokens belongs to its last."""
    options = {"skip_special_tokens": True, "clean_up_tokenization_spaces": False}
    text = str(tokenizer.decode(ids, **options))
    before = (str(tokenizer.decode(ids[:edge], **options)).rstrip("\ufffd") for edge in edges)
    return text, [min(len(prefix), len(text)) for prefix in before]
