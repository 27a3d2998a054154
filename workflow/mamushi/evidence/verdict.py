"""Judge whether the scores of a run can be acted on, and what to say instead of a number if not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from mamushi.data.groups import GroupCodes, independent
from mamushi.evidence.bootstrap import LEVELS, few_groups, resample
from mamushi.evidence.calibration import RatioEstimate, RatioScores, fit_logistic
from mamushi.evidence.dependence import Dependence, hidden_groups
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


MISLABELLED = 0.05
"""Share of wrong labels in each domain for which an interval is given beside that of an AUC."""


def auc_of_right_labels(value: float, wrong: float = MISLABELLED) -> float:
    """Return the AUC against the right labels, if of those in each domain a share is ``wrong``, and
    wrong whatever the score: 0.5 + (AUC - 0.5) / (1 - 2 wrong), at most 1.

    Of a pair, one text alone is wrong, and says nothing, with the probability 2 wrong (1 - wrong);
    both are, and say the opposite, with wrong^2.
    """
    return min(max(0.5 + (value - 0.5) / (1 - 2 * wrong), 0.0), 1.0)


def auc_words(value: float, low: float | None, high: float | None) -> str:
    """Describe an AUC with its interval, and how far that goes if some labels are wrong."""
    if low is None or high is None:
        return f"AUC {value:.2f} without an interval"
    words = f"AUC {value:.2f} [{low:.2f}, {high:.2f}]"
    if (right := auc_of_right_labels(high)) - high < 0.005:
        return words
    return f"{words}, up to {right:.2f} if {MISLABELLED:.0%} of the labels are wrong at random"


@dataclass(frozen=True)
class Verdict:
    """A judgement on the scores of a run; ``reason`` says why no budget can be named, and
    ``refitted`` whether it is known what the scores have lost."""

    auc: float
    auc_low: float | None
    auc_high: float | None
    kept: float
    reason: str | None
    texts: Dependence | None = None
    refitted: bool = True

    def as_json(self) -> dict[str, Any]:
        """Return the verdict for metadata, with one line of ``words``, and ``withheld``.

        That is the reason why no number may rest on the ratio, or None.
        """
        words = auc_words(self.auc, self.auc_low, self.auc_high)
        if self.auc_low is not None:
            words = f"{strength(self.auc_low)} separation: {words}"
        if self.reason:
            words = f"no budget can be named: {self.reason}"
        if self.texts:
            words += f"; {self.texts.words()}"
        hidden = self.texts.reason if self.texts else None
        withheld = self.reason or hidden or (None if self.refitted else NOT_REFITTED)
        return {**asdict(self), "words": words, "withheld": withheld}


def dependence(scores: RatioScores, embeddings: Array) -> Dependence:
    """Return how texts depend on each other, by their groups or by their ``embeddings`` (n, d)."""
    if scores.groups is not None and clusters_of(scores.groups, scores.forget):
        return Dependence(groups=len(np.unique(scores.groups)))
    return hidden_groups(embeddings, scores.forget)


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
    ends = (low, high) if texts is None else texts.ends(value, low, high)
    return Verdict(value, *ends, kept, reason, texts, refitted)


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
        of_part, label = design.__getitem__, forget.astype(np.float64)
        coefficients = fit_logistic(of_part, label, weights, np.full(2, 1e-6))
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
