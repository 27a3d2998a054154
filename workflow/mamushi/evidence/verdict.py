"""The verdict: whether a budget can rest on the scores of a run, and what to do with a list.

First the thresholds, then what is measured, how it is judged, and at the end the words for it. More
thresholds: ``confounds.FOLLOWED`` 0.3 and ``FEWEST`` 10, ``dependence.SURE`` 1.645,
``metrics.DELONG_FACTOR`` 2.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa

from mamushi.data.groups import GroupCodes, effective_share
from mamushi.data.labels import TextProperties
from mamushi.evidence import confounds
from mamushi.evidence.calibration import LEVELS, RatioEstimate, RatioScores, fit_logistic
from mamushi.evidence.dependence import Dependence
from mamushi.evidence.frontier import Array, phi, psi
from mamushi.selection import metrics
from mamushi.selection.arrays import Doubles, Mask
from mamushi.selection.metrics import DELONG_FACTOR

_Row = Mapping[str, Any]

APART = 0.55  # The lower end of an AUC above which a budget can be named.
KEPT = 0.4  # The least part of what can be learned that a score must hold for a budget.
OFF = 0.25  # The most by which E_p1[psi] and E_p2[phi], which are one number, may surely differ.
STRONG, WEAK = 0.8, 0.65  # Lower ends of an AUC: strong from here on, weak below.
MOST_RETAIN, MOST_TOSSED = 0.5, 0.25  # Shares of a list, above which it is to be checked.
MISLABELLED = 0.05  # The share of wrong labels in each domain that an AUC is told for, too.
MOST_NAMED = 3  # Of what a score follows.
VAGUE = 0.8  # A share that is known no better than so is not told.
CHECKS = {"slope": 1.0, "intercept": 0.0, "psi_over_phi": 1.0}  # What a density ratio has.

TAKE, CHECK, REFUSE, COMPARISON, UNKNOWN = "take", "check", "refuse", "comparison", "unknown"
ADVICE_WORDS = {
    TAKE: "act on it",
    CHECK: "check the list before deleting",
    REFUSE: "do not delete by this",
    COMPARISON: "a comparison, not to be acted on",
    UNKNOWN: "no verdict",
}

# What is measured ---------------------------------------------------------------------------------


def auc_interval(
    score: Doubles, forget: Mask, refits: Sequence[Doubles] = (), groups: GroupCodes | None = None
) -> tuple[float, float, float]:
    """Return the AUC of cross-fitted scores with the 95% interval of ``auc_ends``: by
    ``DELONG_FACTOR`` times the sampling variance of texts, or ``groups`` (n,), and the variance
    over ``refits``."""
    above, below = metrics.placements(score, forget)
    error = metrics.sampling_error(above, below, metrics.clusters_of(groups, forget))
    value = float(above.mean())
    variance = DELONG_FACTOR * error.variance
    if len(refits) > 1:
        variance += float(np.var([metrics.auc(refit, forget) for refit in refits], ddof=1))
    return value, *metrics.auc_ends(value, variance, error.texts, error.errors)


def auc_of_right_labels(value: float) -> float:
    """Return the AUC against the right labels, if of those in each domain ``MISLABELLED`` are
    wrong, whatever the score: 0.5 + (AUC - 0.5) / (1 - 2 wrong), at most 1."""
    return min(max(0.5 + (value - 0.5) / (1 - 2 * MISLABELLED), 0.0), 1.0)


def separation(scores: RatioScores, texts: TextProperties) -> dict[str, Any]:
    """Return how well ``scores`` tell the domains apart, and what else they follow: the ``auc``,
    that among texts of one length, ``matched``, with intervals, None where retain texts have no
    score, and the ``columns`` that leak. Intervals are None where ``leak_reason`` names one."""
    score, forget, groups = scores.score, scores.forget, texts.groups
    times = 1.0 if scores.fold is None else DELONG_FACTOR
    names = ("auc", "auc_low", "auc_high", "matched", "matched_low")
    measured: list[float | None] = [None] * len(names)
    if not np.isnan(score).any():
        measured[:3] = auc_interval(score, forget, scores.refits, groups)
        if confounds.are_enough(forget, groups):
            strata = confounds.stratum(texts.words)
            matched = confounds.stratified_auc(score, forget, strata, times, groups)
            measured[3:] = matched[:2] if matched else (None, None)
    separates: dict[str, Any] = dict(zip(names, measured, strict=True))
    separates["follows"] = confounds.find_confounds(score, forget, texts)[:MOST_NAMED]
    if leaks := confounds.leaking_columns(score, forget, texts.columns, groups, times):
        separates["columns"] = leaks
    if leak_reason(leaks):
        separates |= dict.fromkeys(("auc_low", "auc_high", "matched_low"))
    return separates


def leak_reason(columns: Sequence[_Row]) -> str | None:
    """Return why no interval and no budget may be given: among texts of equal value in a column the
    scores are not told from chance; None where they are."""
    for row in columns:
        if row["auc"] is not None and row["low"] <= 0.5:
            return f"the scores may be those of a column: {_describe_column(row)}"
    return None


def ratio_checks(
    scores: RatioScores, estimate: RatioEstimate, resamples: int, seed: int
) -> list[dict[str, Any]]:
    """Return the rows of the table ``calibration`` but for the run, whether estimated log ratios l
    are those of a density ratio: the slope and the intercept of a logistic regression of the domain
    on l, and E_p1[psi(l)] / E_p2[phi(l)], with 95% percentiles over ``resamples`` of the texts."""
    ratio, forget, pi1 = estimate.log_ratio, scores.forget, float(scores.forget.mean())
    gains, harms = psi(ratio, pi1), phi(ratio, pi1)
    design = np.column_stack([np.ones(len(ratio)), ratio])

    def measure(weights: Doubles) -> Doubles:
        w1, w2 = weights * forget, weights * ~forget
        level, slope = fit_logistic(design, forget.astype(np.float64), weights, np.full(2, 1e-6))
        quotient = (w1 @ gains / w1.sum()) / (w2 @ harms / w2.sum())
        return np.array([slope, level - np.log(w1.sum()) + np.log(w2.sum()), quotient])

    value, expected = measure(np.ones(len(ratio))), np.array([*CHECKS.values()])
    drawn = [measure(weights) for weights in scores.resamples(resamples, seed)]
    low, high = scores.widen(value, np.quantile(drawn, LEVELS, axis=0))
    columns = {"check": [*CHECKS], "value": value, "low": low, "high": high, "expected": expected}
    return pa.table({**columns, "holds": (low <= expected) & (expected <= high)}).to_pylist()


def share_bound(
    score2: Array, threshold: float, budget: float, groups2: GroupCodes | None = None
) -> dict[str, float | None]:
    """Return the share of a list that the retain domain would produce too, and its upper bound. It
    is R / ``budget`` of the part R that scores ``threshold`` and above. By the band of Dvoretzky,
    Kiefer and Wolfowitz (Massart, 1990) around ``score2`` (n2,), R <= R_n + sqrt(log(1 / 0.025) /
    (2 n2)) in 97.5% of samples *at all thresholds at once*; 2.5% are left for cross-fitting. With
    ``groups2`` (n2,), n2 is as in ``effective_share``."""
    above, n2 = float(np.mean(score2 >= threshold)), len(score2) * effective_share(groups2)
    band = float(np.sqrt(np.log(1 / 0.025) / (2 * n2)))
    return {"estimate": min(above / budget, 1.0), "upper_bound": min((above + band) / budget, 1.0)}


# How it is judged ---------------------------------------------------------------------------------


def judge_scores(
    scores: RatioScores,
    estimate: RatioEstimate,
    checked: Sequence[_Row],
    texts: Dependence,
    columns: Sequence[_Row] = (),
) -> dict[str, Any]:
    """Judge whether a budget can rest on ``scores`` and the ratio ``estimate``, for metadata, by
    the rows of ``ratio_checks`` and of ``leaking_columns``: ``reason`` says why no budget can be
    named, and ``withheld`` why no number may rest on the ratio, or both are None."""
    value, low, high = auc_interval(scores.score, scores.forget, scores.refits, scores.groups)
    seen = f"AUC {value:.2f} [{low:.2f}, {high:.2f}]"
    quotient = next(row for row in checked if row["check"] == "psi_over_phi")
    reason = leak_reason(columns)
    if reason is None and low <= APART:
        reason = f"the domains cannot be told apart: {seen}"
    elif reason is None and estimate.kept < KEPT:
        reason = "the scores are mostly their estimator's noise: they hold "
        reason += f"{estimate.kept:.2f} of the separation that these texts can teach ({seen})"
    elif reason is None and (quotient["low"] > 1 + OFF or quotient["high"] < 1 / (1 + OFF)):
        off = "{value:.2f} [{low:.2f}, {high:.2f}]".format(**quotient)
        reason = f"the scores fail the ratio check: E_p1[psi] / E_p2[phi] is {off} instead of 1"
    withheld, is_refitted = reason or texts.reason, len(scores.refits) > 0
    if withheld is None and not is_refitted:
        withheld = "nothing was refitted (evidence.refits.whole is 0, or that would be to train "
        withheld += "models), so what the scores have lost is not known"
    auc_low, auc_high = texts.ends(value, low, high)
    words = f"no budget can be named: {reason}"
    words = words if reason else _describe_separation(value, auc_low, auc_high)
    return {
        **{"auc": value, "auc_low": auc_low, "auc_high": auc_high, "kept": estimate.kept},
        **{"reason": reason, "withheld": withheld, "refitted": is_refitted},
        **{"texts": asdict(texts), "words": f"{words}; {texts.words()}"},
    }


def judge_list(
    separates: _Row,
    removed: int,
    stability: _Row,
    also_retain: Mapping[str, float | None],
    *,
    compared: str | None = None,
    reason: str | None = None,
    texts: Dependence | None = None,
    unit: str = "texts",
    holds: str | None = None,
) -> dict[str, Any]:
    """Return what to do with a list of ``removed`` texts, for its manifest: the ``judgement`` has
    ``act``, a key of ``ADVICE_WORDS``, and words on the ranking and the list.

    ``separates`` is its ``separation``, ``stability`` the summary of ``ranking.stability_columns``
    at its budget, ``also_retain`` its ``share_bound``. ``compared`` says why it is a comparison.
    ``reason`` is that of ``judge_scores``, ``texts`` how these depend on each other, ``unit`` what
    is listed, and ``holds`` what a list holds, where that is said in other words."""
    value, low, matched_low = (separates[name] for name in ("auc", "auc_low", "matched_low"))
    if texts is not None:
        low, high = texts.ends(value, low, separates["auc_high"])
        matched_low, _ = texts.ends(separates["matched"], matched_low, None)
        separates = {**separates, "auc_low": low, "auc_high": high, "matched_low": matched_low}
    bound, tossed = also_retain["upper_bound"], stability["toss_up"]
    columns = separates.get("columns", ())
    doubts = (
        any(row["confound"] in ("words", "copies") for row in separates["follows"]),
        len(columns) > 0,
        min((end for end in (low, matched_low) if end is not None), default=0.0) < STRONG,
        bound is None or bound > MOST_RETAIN,
        tossed is None or tossed > MOST_TOSSED * removed,
    )
    if compared is not None:
        act, ranking = COMPARISON, f"{ADVICE_WORDS[COMPARISON]}: {compared}"
    elif value is None:
        act, ranking = UNKNOWN, "the ranking has no score for retain texts, so it has no AUC"
    else:
        is_refused = reason or leak_reason(columns) or (value if low is None else low) < WEAK
        act = REFUSE if is_refused else CHECK if any(doubts) else TAKE
        ranking = _describe_ranking(separates, texts)
    listed = _describe_list(removed, stability, also_retain, unit, holds)
    listed = f"{reason}; {listed}" if reason else listed
    words = ranking if act == COMPARISON else f"{ADVICE_WORDS[act]}: {ranking}; {listed}"
    judgement = {"act": act, "ranking": ranking, "list": listed}
    return {"verdict": words, "judgement": judgement, "separation": dict(separates)}


def order_lists(lists: Mapping[str, Sequence[_Row]]) -> list[str]:
    """Return the selectors of ``lists`` (manifests by selector), the one to be acted on first: the
    selector whose scores estimate the ratio, else the first that is no comparison."""

    def place(name: str) -> tuple[bool, bool, str]:
        first = lists[name][0]
        return first["judgement"]["act"] == COMPARISON, first["expected"]["by"] != name, name

    return sorted(lists, key=place)


# The words ----------------------------------------------------------------------------------------


def _strength(auc_low: float) -> str:
    return "strong" if auc_low >= STRONG else "moderate" if auc_low >= WEAK else "weak"


def _describe_separation(value: float, low: float | None, high: float | None) -> str:
    """Return words on an AUC with its 95% interval, and on wrong labels if these matter."""
    if low is None or high is None:
        return f"AUC {value:.2f} without an interval"
    words = f"{_strength(low)} separation, AUC {value:.2f} [{low:.2f}, {high:.2f}]"
    if (right := auc_of_right_labels(high)) - high < 0.005:
        return words
    return f"{words}, up to {right:.2f} if {MISLABELLED:.0%} of the labels are wrong at random"


def _describe_ranking(separates: _Row, texts: Dependence | None) -> str:
    """Return words on how well scores separate the domains, and on what else they follow."""
    low, matched_low = separates["auc_low"], separates["matched_low"]
    words = _describe_separation(separates["auc"], low, separates["auc_high"])
    if matched_low is not None and _strength(matched_low) != _strength(low):
        words += f", {separates['matched']:.2f} among texts of the same length"
    if follows := [_describe_confound(row) for row in separates["follows"]]:
        words += f"; the scores follow {', '.join(follows)}"
    columns = map(_describe_column, separates.get("columns", ())[:MOST_NAMED])
    return "; ".join([words, *columns, *([texts.words()] if texts else [])])


def _describe_confound(row: _Row) -> str:
    """Return words on a property of texts that scores follow within the forget domain."""
    nouns = {"words": "the number of words", "copies": "the number of copies"}
    name = nouns.get(row["confound"], row["confound"].removeprefix("label_"))
    if row["value"] is None:
        return f"{name} (rank correlation {row['estimate']:.2f})"
    return f"{name} {row['value']!r} (AUC {row['estimate']:.2f})"


def _describe_column(row: _Row) -> str:
    """Return words on a row of ``leaking_columns``."""
    how = "tells the domain" if row["tells"] else "is followed by the scores"
    among = ": AUC {auc:.2f} [{low:.2f}, {high:.2f}] among texts of equal value"
    return f"column {row['column']!r} {how}" + (among.format(**row) if row["auc"] else "")


def _describe_list(
    removed: int,
    stability: _Row,
    also_retain: Mapping[str, float | None],
    unit: str,
    holds: str | None,
) -> str:
    """Return a clause on what a list of ``removed`` texts holds, and on its toss-ups."""
    if not removed:
        return "the list is empty"
    bound = also_retain["upper_bound"]
    words = holds or "how much of it looks like texts to keep is not known"
    if holds is None and bound is not None and bound < VAGUE:
        words = "{estimate:.0%} of it looks like texts to keep, at most {upper_bound:.0%}"
        words = words.format(**also_retain)
    if stability["toss_up"] is None:
        return f"{words}; it was not refitted, so its toss-ups are not known"
    tossed = f"{stability['toss_up']:,} of {removed:,} {unit} are toss-ups"
    return f"{words}; {tossed}: not all {stability['rankings']} rankings list them"


def unit_of(metadata: _Row) -> str:
    """Return what is ranked, by metadata of scores or a manifest: texts, or windows of them."""
    return "windows" if metadata.get("windows") else "texts"
