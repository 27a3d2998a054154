"""Judge whether the scores of a run can be acted on, and what to say instead of a number if not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from mamushi.data.groups import GroupCodes, independent
from mamushi.evidence.bootstrap import LEVELS, few_groups, resample
from mamushi.evidence.calibration import RatioEstimate, RatioScores, fit_logistic
from mamushi.evidence.dependence import close_texts
from mamushi.evidence.frontier import Array, phi, psi
from mamushi.selection.arrays import Doubles, Mask
from mamushi.selection.metrics import (
    NORMAL,
    auc,
    auc_ends,
    clusters_of,
    placements,
    sampling_variance,
    t_error,
)

APART = 0.55
"""The end of its AUC's interval above which a score tells the domains apart well enough for a
budget."""
KEPT = 0.4
"""The least part of what can be learned that a score must hold for a budget."""
OFF = 0.25
"""The most by which E_p1[psi] and E_p2[phi], which are one number, may surely differ."""
STRONG, WEAK = 0.8, 0.65
"""Ends of the AUC's interval from which a separation is strong, and below which it is weak."""


def strength(auc_low: float) -> str:
    """Return in a word how far apart the domains are, by the lower end of an AUC's interval."""
    if auc_low >= STRONG:
        return "strong"
    return "moderate" if auc_low >= WEAK else "weak"


NOT_REFITTED = (
    "nothing was refitted (evidence.refits.whole is 0), so what the scores have lost is not known"
)


@dataclass(frozen=True)
class Dependence:
    """How texts depend on each other: the number of their ``groups``, of one text or more, or,
    without groups, how many of the texts that were ``looked_at`` are too ``close`` to a neighbour,
    and whether these are more than by chance (``dependent``); ``auc_low`` and
    ``auc_high`` are the interval that the AUC would need if these were groups."""

    groups: int | None = None
    looked_at: int = 0
    close: int = 0
    dependent: bool = False
    auc_low: float | None = None
    auc_high: float | None = None

    def words(self) -> str:
        """Return it as a clause."""
        if self.groups is not None:
            return f"intervals are by {self.groups} groups of texts"
        if not self.looked_at:
            return "texts are taken as independent"
        if not self.dependent:
            return "texts are taken as independent: neighbours are no closer than chance makes them"
        words = (
            f"texts are taken as independent, but {self.close} of {self.looked_at} are too close "
            "to a neighbour for that: give the dataset a 'group'"
        )
        if self.auc_low is None:
            return words
        return (
            f"{words} (if those were groups, the AUC's interval would be "
            f"[{self.auc_low:.2f}, {self.auc_high:.2f}])"
        )


@dataclass(frozen=True)
class Verdict:
    """A judgement on the scores of a run; ``reason`` says why no budget can be named, and
    ``refitted`` whether it is known what the scores have lost."""

    auc: float
    auc_low: float
    auc_high: float
    kept: float
    reason: str | None
    texts: Dependence | None = None
    refitted: bool = True

    def as_json(self) -> dict[str, Any]:
        """Return the verdict for metadata, with one line of ``words``, and ``withheld``.

        That is the reason why no number may rest on the ratio, or None.
        """
        seen = f"AUC {self.auc:.2f} [{self.auc_low:.2f}, {self.auc_high:.2f}]"
        words = f"{strength(self.auc_low)} separation: {seen}"
        if self.reason:
            words = f"no budget can be named: {self.reason}"
        if self.texts:
            words += f"; {self.texts.words()}"
        withheld = self.reason or (None if self.refitted else NOT_REFITTED)
        return {**asdict(self), "words": words, "withheld": withheld}


def dependence(
    scores: RatioScores, refits: Sequence[Doubles], embeddings: Array
) -> tuple[Dependence, GroupCodes | None]:
    """Return how texts depend on each other, by their groups or by their ``embeddings`` (n, d).

    Beside it come the codes (n,) of groups of close texts, where texts have no groups and more are
    close than by chance; else None.
    """
    if scores.groups is not None and clusters_of(scores.groups, scores.forget):
        return Dependence(groups=len(np.unique(scores.groups))), None
    seen = close_texts(embeddings, scores.forget)
    texts = Dependence(None, seen.looked_at, seen.texts, seen.dependent)
    if not seen.dependent or seen.groups is None:
        return texts, None
    _, low, high = auc_interval(scores.score, scores.forget, refits, seen.groups)
    return replace(texts, auc_low=low, auc_high=high), seen.groups


def judge_scores(
    scores: RatioScores,
    refits: Sequence[Doubles],
    checked: Iterable[dict[str, Any]],
    texts: Dependence | None = None,
    *,
    refitted: bool = True,
) -> Verdict:
    """Judge whether a budget can rest on ``scores``.

    ``refits`` (n,) are the scores of other seeds, ``checked`` the rows of ``ratio_checks``, and
    ``texts`` the result of ``dependence``. Where nothing was ``refitted``, not on halves of the
    texts either, it is unknown what the scores have lost.
    """
    value, low, high = auc_interval(scores.score, scores.forget, refits, scores.groups)
    kept = scores.kept()
    seen = f"AUC {value:.2f} [{low:.2f}, {high:.2f}]"
    reason = None
    off = [row for row in checked if row["check"] == "psi_over_phi" and not row["holds"]]
    if low <= APART:
        reason = f"the domains cannot be told apart: {seen}"
    elif kept < KEPT:
        reason = (
            f"the scores are mostly their estimator's noise: they hold {kept:.2f} of the "
            f"separation that these texts can teach ({seen})"
        )
    elif off and (off[0]["low"] > 1 + OFF or off[0]["high"] < 1 / (1 + OFF)):
        (row,) = off
        reason = (
            "the scores fail the ratio check: E_p1[psi] / E_p2[phi] is "
            f"{row['value']:.2f} [{row['low']:.2f}, {row['high']:.2f}] instead of 1"
        )
    return Verdict(value, low, high, kept, reason, texts, refitted)


def auc_interval(
    score: Doubles, forget: Mask, refits: Sequence[Doubles] = (), groups: GroupCodes | None = None
) -> tuple[float, float, float]:
    """Return the AUC of cross-fitted scores, with a 95% interval for a ranking by all texts.

    The error of DeLong et al. (1988) at ``TWICE`` its variance, or that by ``groups`` (n,), is for
    the sample of texts, and the spread over ``refits`` for the estimator.
    """
    above, below = placements(score, forget)
    clusters = clusters_of(groups, forget)
    variance = sampling_variance(above, below, clusters)
    if len(refits) > 1:
        variance += float(np.var([auc(refit, forget) for refit in refits], ddof=1))
    value = float(above.mean())
    if clusters is not None:
        texts = min(len(np.unique(codes)) for codes in clusters)
        return value, *auc_ends(value, variance, texts, t_error(above, below, clusters))
    error = NORMAL * float(np.sqrt(variance))
    return value, max(value - error, 0.0), min(value + error, 1.0)


def ratio_checks(
    scores: RatioScores, estimate: RatioEstimate, resamples: int, seed: int
) -> list[dict[str, Any]]:
    """Check that estimated log ratios l are those of a density ratio.

    Rows have ``check, value, low, high, expected, holds``: the slope and the intercept of a
    logistic regression of the domain on l, and E_p1[psi(l)] / E_p2[phi(l)] = 1. Intervals are 95%
    percentiles over ``resamples`` of the texts, at the ratio as estimated.
    """
    ratio, forget, pi1 = estimate.log_ratio, scores.forget, scores.pi1
    gains, harms = psi(ratio, pi1), phi(ratio, pi1)
    design = np.column_stack([np.ones(len(ratio)), ratio])

    def measured(weights: Doubles) -> list[float]:
        forget_weights, retain_weights = weights * forget, weights * ~forget
        n1, n2 = forget_weights.sum(), retain_weights.sum()
        coefficients = fit_logistic(design, forget.astype(np.float64), weights, np.full(2, 1e-6))
        return [
            float(coefficients[1]),
            float(coefficients[0] - np.log(n1) + np.log(n2)),
            float((forget_weights @ gains / n1) / (retain_weights @ harms / n2)),
        ]

    rng = np.random.default_rng(seed)
    point = measured(np.ones(len(ratio)))
    drawn = [measured(resample(forget, rng, scores.groups)) for _ in range(resamples)]
    low, high = np.quantile(drawn, LEVELS, axis=0)
    if (wider := few_groups(forget, scores.groups)) > 1:
        low, high = (point + wider * (end - point) for end in (low, high))
    return [
        {
            "check": name,
            "value": point[i],
            "low": float(low[i]),
            "high": float(high[i]),
            "expected": expected,
            "holds": bool(low[i] <= expected <= high[i]),
        }
        for i, (name, expected) in enumerate(CHECKS.items())
    ]


CHECKS = {"slope": 1.0, "intercept": 0.0, "psi_over_phi": 1.0}
"""Name of each check, with the value that a density ratio has."""


def share_bound(
    score2: Array, threshold: float, budget: float, groups2: GroupCodes | None = None
) -> tuple[float, float]:
    """Return the share of a list that the retain domain would produce too, and its upper bound.

    R is the part of the retain domain that scores ``threshold`` and above, and R / ``budget`` the
    share. By the band of Dvoretzky, Kiefer and Wolfowitz (Massart, 1990) around ``score2`` (n2,),
    R <= R_n + sqrt(log(1 / 0.025) / (2 n2)) in 97.5% of samples *at all thresholds at once*. Scores
    of cross-fitting are not quite independent, for which 2.5% are left. Of ``groups2`` (n2,) of
    sizes m, n2 is n2^2 / sum(m^2), as if the texts of a group were one (Kish, 1965).
    """
    above, n2 = float(np.mean(score2 >= threshold)), len(score2) * independent(groups2)
    band = float(np.sqrt(np.log(1 / 0.025) / (2 * n2)))
    return min(above / budget, 1.0), min((above + band) / budget, 1.0)
