"""Find forget texts that look like retain, and retain texts that look like forget.

A text looks like the other domain when its score is beyond that domain's median: more than half of
the texts there look more like its own domain than itself. Confident learning (Northcutt et al.
2021) draws the line at the other class's mean probability; the median needs no calibrated scale. A
text is compared with those of its own fold, which the same networks have scored. How stable that
is say the scores by other seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mamushi.artifacts.tables import FORGET, RETAIN
from mamushi.evidence.confounds import FEWEST
from mamushi.evidence.verdict import auc_interval
from mamushi.selection.metrics import Codes
from mamushi.selection.pool import Scored

Doubles = NDArray[np.float64]
Mask = NDArray[np.bool_]

PLACES = 200
"""Most texts of a domain in the table."""


def refusal(score: Doubles, forget: Mask, groups: Codes | None = None) -> str | None:
    """Say why scores (n,) can name no text that is on the wrong side; None where they can. The
    AUC has an interval by ``groups`` (n,)."""
    if np.isnan(score).any():
        return "the selector has no score for retain texts"
    if min(forget.sum(), (~forget).sum()) < FEWEST:
        return f"fewer than {FEWEST} texts in a domain"
    estimate, low, high = auc_interval(score, forget, groups=groups)
    if low <= 0.5:
        return f"the domains cannot be told apart: AUC {estimate:.2f} [{low:.2f}, {high:.2f}]"
    return None


def beyond(score: Doubles, forget: Mask, fold: NDArray[np.int64] | None) -> tuple[Doubles, Doubles]:
    """Return the share of the other domain's texts of the fold that a text (n,) looks more like the
    other domain than, and that of its own; NaN where a fold lacks a domain."""
    folds = np.zeros(len(score), dtype=np.int64) if fold is None else fold
    # Up is towards the other domain.
    away = np.where(forget, -score, score)
    other_beyond, own_beyond = np.full((2, len(score)), np.nan)
    for number in np.unique(folds):
        inside = folds == number
        one, two = inside & forget, inside & ~forget
        for mine, theirs in ((one, two), (two, one)):
            if theirs.any():
                mirrored, ours = np.sort(-away[theirs]), np.sort(-away[mine])
                other_beyond[mine] = np.searchsorted(mirrored, away[mine]) / len(mirrored)
                own_beyond[mine] = np.searchsorted(ours, -away[mine], side="right") / len(ours)
    return other_beyond, own_beyond


def triage(
    ids: NDArray[np.object_],
    score: Doubles,
    forget: Mask,
    fold: NDArray[np.int64] | None,
    refits: Sequence[Scored] = (),
) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Return rows of the table ``triage`` but for texts, and how many look like the other domain.

    ``ids``, ``score``, ``forget`` (n,), and ``fold`` (n,) where there are folds; ``refits`` are
    scores of the same texts by other seeds. At most ``PLACES`` rows of a domain, those first of
    which the most scores say so, and then that the most texts of the other domain exceed.
    """
    other_beyond, own_beyond = beyond(score, forget, fold)
    said = [other_beyond > 0.5]
    for again in refits:
        held = None if again.fold is None else again.fold.astype(np.int64)
        said.append(beyond(again.scores, forget, held)[0] > 0.5)
    stable = np.mean(said, axis=0)
    rows: list[dict[str, Any]] = []
    counts = {}
    for domain, other, mine in ((FORGET, RETAIN, forget), (RETAIN, FORGET, ~forget)):
        found = np.flatnonzero(mine & (other_beyond > 0.5))
        counts[domain] = len(found)
        order = sorted(found, key=lambda i: (-stable[i], -other_beyond[i], own_beyond[i], ids[i]))
        for place, i in enumerate(order[:PLACES], start=1):
            rows.append(
                {
                    "domain": domain,
                    "place": place,
                    "id": ids[i],
                    "score": float(score[i]),
                    "fold": None if fold is None else int(fold[i]),
                    "other_beyond": float(other_beyond[i]),
                    "own_beyond": float(own_beyond[i]),
                    "stable": float(stable[i]) if refits else None,
                    "why": f"{other_beyond[i]:.1%} of the {other} texts look more like {domain}",
                }
            )
    return rows, counts
