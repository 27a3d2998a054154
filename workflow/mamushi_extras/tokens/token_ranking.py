"""Say what it is worth to mask the first tokens of a ranking: by the mean scores of texts, how well
it tells the domains apart, and by retain texts' own tokens what a mask would take of them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mamushi.data.labels import TextProperties
from mamushi.evidence.calibration import RatioScores
from mamushi.evidence.verdict import judge_list, separation, share_bound
from mamushi.io.domains import FORGET
from mamushi.lm.tokens import TokenSet
from mamushi.selection.arrays import Doubles, Mask
from mamushi.selection.removals import budget_size
from mamushi_extras.tokens.masks import ScoresByText, digest_of_spans, highest_spans, top_mask

FORESEEN = "the table predicted says what masking does, where texts are held out"


def mask_manifests(
    texts: TokenSet,
    scores: ScoresByText,
    refits: Sequence[ScoresByText],
    properties: TextProperties,
    budgets: Iterable[float],
    cross_fitted: bool,
    compared: str | None,
) -> Iterator[dict[str, Any]]:
    """Yield what is known of the mask at each budget of a ranking, with the scores of its
    ``refits``; ``compared`` says why it is a comparison. ``retain_tokens`` is the share of the
    retain texts' tokens that score as high as the mask, with its upper bound by texts or their
    groups; ``also_retain`` the share of the mask that as many of them would have put there."""
    forget = np.asarray(texts.domains == FORGET)
    rows, ids = np.flatnonzero(forget).tolist(), texts.ids[forget].tolist()
    fold = np.zeros(len(texts), np.int64) if cross_fitted else None
    means, *means_again = map(_text_means, (scores, *refits))
    separates = separation(RatioScores(means, forget, fold, refits=means_again), properties)
    by_text, retain = _scores_of(scores, forget), _scores_of(scores, ~forget)
    ranked, *ranked_again = (np.concatenate(_scores_of(s, forget)) for s in (scores, *refits))
    codes = np.arange(len(texts)) if properties.groups is None else properties.groups
    for beta in budgets:
        k = budget_size(beta, len(ranked))
        spans = highest_spans(ids, by_text, k, [texts.places_of(row) for row in rows])
        masked = top_mask(ranked, k)
        count = int(masked.sum())
        threshold = float(ranked[masked].min()) if count else None
        cost: dict[str, float | None] = {"estimate": None, "upper_bound": None}
        if threshold is not None and len(retain) == (~forget).sum():
            by_token = np.repeat(codes[~forget], [*map(len, retain)])
            cost = share_bound(np.concatenate(retain), threshold, 1.0, by_token)
        share = float(masked.mean()) if count else 1.0
        of_mask = {name: end and min(end / share, 1.0) for name, end in cost.items()}
        again = [top_mask(refit, k) for refit in ranked_again]
        surely = int(np.logical_and.reduce([masked, *again]).sum())
        stable: dict[str, Any] = {"rankings": 1 + len(again), "surely": None, "toss_up": None}
        stable |= {"surely": surely, "toss_up": count - surely} if again else {}
        judged = judge_list(separates, count, stable, of_mask, compared=compared, unit="tokens")
        yield {
            "n_forget": len(ids),
            "n_retain": len(texts) - len(ids),
            "tokens": len(ranked),
            "masked": count,
            "texts": len({span["id"] for span in spans}),
            "threshold": threshold,
            "spans_sha256": digest_of_spans(spans),
            **judged,
            "also_retain": of_mask,
            "retain_tokens": cost,
            "stability": stable,
            "expected": {"by": None, "withheld": FORESEEN},
        }


def _text_means(scores: ScoresByText) -> Doubles:
    of_texts = (np.nan if x is None else x.mean() if len(x) else 0.0 for x in scores)
    return np.fromiter(of_texts, np.float64, len(scores))


def _scores_of(scores: ScoresByText, chosen: Mask) -> list[NDArray[np.float32]]:
    """Return the scores of tokens of each text that is ``chosen`` (n,) and scored."""
    pairs = zip(scores, chosen, strict=True)
    return [of_text for of_text, here in pairs if here and of_text is not None]
