"""What follows for a list from all that is known of it, and for the scores of a run."""

import re
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from mamushi.data.labels import TextProperties
from mamushi.evidence import confounds, dependence, verdict
from mamushi.evidence.calibration import RatioEstimate, RatioScores
from mamushi.evidence.dependence import Dependence
from mamushi.evidence.verdict import (
    CHECKS,
    auc_interval,
    judge_list,
    judge_scores,
    ratio_checks,
    separation,
    share_bound,
)
from mamushi.selection.folds import stratified_folds
from mamushi.selection.metrics import DELONG_FACTOR, auc, auc_ends
from tests.unit.evidence.test_calibration import normals


def test_the_module_says_the_thresholds_of_other_files() -> None:
    values = (confounds.FOLLOWED, confounds.FEWEST, dependence.SURE, DELONG_FACTOR)
    assert re.findall(r"`` (\d[\d.]*\d|\d)\b", verdict.__doc__) == [f"{x:g}" for x in values]


# The interval of an AUC ---------------------------------------------------------------------------


def test_the_interval_of_an_auc_has_twice_delongs_variance() -> None:
    """By the definition of his components, with ties."""
    one, two = np.array([3.0, 5, 5, 2, 7]), np.array([1.0, 2, 5, 0, 4, 2])
    wins = (one[:, None] > two) + 0.5 * (one[:, None] == two)
    error = np.sqrt(2 * (wins.mean(1).var(ddof=1) / 5 + wins.mean(0).var(ddof=1) / 6))
    score, forget = np.concatenate([one, two]), np.arange(11) < 5
    value, low, high = auc_interval(score, forget)
    assert value == pytest.approx(wins.mean())
    assert (low, high) == pytest.approx(auc_ends(value, error**2, 5))
    assert auc_interval(score, forget, [score, -score, score])[1] < low


@pytest.mark.parametrize("texts", [10, 15, 100])
@pytest.mark.parametrize(("apart", "stray"), [(0.4, 0.0), (2.5, 0.0), (4.0, 0.03), (3.0, 0.1)])
def test_an_interval_holds_of_few_texts_and_of_strong_scores(
    texts: int, apart: float, stray: float
) -> None:
    """Of forget texts at ``apart`` standard deviations, but for the share ``stray`` that lies low
    among the retain texts, and may be missing from the sample."""
    rng, covers, times = np.random.default_rng(texts), 0, 200
    true = (1 - stray) * norm.cdf(apart / 2**0.5) + stray * norm.cdf(-(2**0.5))
    forget = np.arange(texts + 200) < texts
    for _ in range(times):
        centre = np.where(rng.random(texts) < stray, -2.0, apart)
        score = rng.normal(np.concatenate([centre, np.zeros(200)]), 1)
        _, low, high = auc_interval(score, forget)
        covers += low <= true <= high
    assert covers >= 0.93 * times


# The scores of a run ------------------------------------------------------------------------------


def test_two_equal_domains_are_refused() -> None:
    forget = np.arange(300) < 100
    fold = stratified_folds(forget, 5, 0).astype(np.int64)
    for seed in range(40):
        a, b, score = np.random.default_rng(seed).normal(size=(3, 300))
        scores = RatioScores(score, forget, fold, [(a, b, fold)])
        checks = ratio_checks(scores, estimate := scores.estimate(), 5, 0)
        found = judge_scores(scores, estimate, checks, Dependence())
        assert found["withheld"] == found["reason"] is not None


@pytest.mark.parametrize(
    ("checked", "noise", "reason"),
    [
        ((1.5, 1.3, 1.7), 0, "the scores fail the ratio check"),
        ((0.7, 0.6, 0.79), 0, "the scores fail the ratio check"),
        ((1.3, 1.2, 1.4), 0, None),
        ((1.5, 0.9, 2.1), 0, None),
        ((1.0, 0.9, 1.1), 6, "the scores are mostly their estimator's noise"),
    ],
)
def test_a_ratio_that_is_surely_off_is_refused_and_noise_too(
    checked: tuple[float, ...], noise: float, reason: str | None
) -> None:
    exactly, forget = normals(400, 600, 3.0)
    score, fold = exactly + np.random.default_rng(0).normal(0, noise, 1000), np.zeros(1000, int)
    row = dict(zip(("value", "low", "high"), checked, strict=True)) | {"check": "psi_over_phi"}
    scores = RatioScores(score, forget, fold, [(exactly, exactly, fold)])
    found = judge_scores(scores, scores.estimate(), [row], Dependence())
    assert (found["reason"] or "").startswith(reason or "") and bool(found["reason"]) == bool(
        reason
    )


def test_the_checks_hold_of_the_exact_ratio_and_of_no_other_scale() -> None:
    exactly, forget = normals(3000, 5000, 1.5)
    scores = RatioScores(exactly, forget, np.zeros(8000, dtype=np.int64))

    def failed(log_ratio: np.ndarray) -> set[str]:
        rows = ratio_checks(scores, RatioEstimate(log_ratio, 0.0, 1.0, 1.0), 60, 0)
        assert {row["check"]: row["expected"] for row in rows} == CHECKS
        return {row["check"] for row in rows if not row["holds"]}

    assert not failed(exactly)
    assert failed(1.5 * exactly) >= {"slope", "psi_over_phi"}
    assert failed(exactly + 0.5) >= {"intercept", "psi_over_phi"}


def test_the_bound_on_the_retain_share_holds_at_all_thresholds_at_once() -> None:
    """Of uniform scores, of which 1 - t lie above t, in about 97.5% of samples."""
    rng = np.random.default_rng(0)
    worst = []
    for _ in range(300):
        score = rng.random(100)
        # The share above falls at the scores, and next to them is the furthest from the truth.
        bounds = [share_bound(score, np.nextafter(t, 2), 1.0)["upper_bound"] for t in score]
        worst.append((bounds + score - 1).min())
    assert 0.96 <= np.mean(np.array(worst) >= -1e-9) < 1
    few = np.array([0.1, 0.5, 0.9])
    assert share_bound(few, 0.5, 0.8)["estimate"] == pytest.approx(2 / 3 / 0.8)
    assert share_bound(few, 0.5, 0.1) == {"estimate": 1, "upper_bound": 1}


# A list -------------------------------------------------------------------------------------------

N1, N2 = 80, 120
FORGET = np.arange(N1 + N2) < N1
OWN = {
    **{"auc": 0.95, "auc_low": 0.9, "auc_high": 0.97, "matched": 0.94, "matched_low": 0.88},
    "follows": [],
}
LISTED = {"rankings": 6, "expected_overlap": 0.9, "surely": 18, "toss_up": 2}
RETAIN = {"estimate": 0.02, "upper_bound": 0.3}


def separated(score: Any, refits: Any = (), words: Any = None, **labels: Any) -> dict[str, Any]:
    lengths = np.random.default_rng(1).integers(5, 50, N1 + N2) + 0.0 if words is None else words
    texts = TextProperties(FORGET, lengths, np.zeros(N1 + N2), labels)
    return separation(RatioScores(score, FORGET, refits=refits), texts)


def test_a_ranking_is_judged_by_its_own_scores() -> None:
    score = np.random.default_rng(0).normal(size=N1 + N2) + 2 * FORGET
    found = separated(score)
    assert found["auc"] == pytest.approx(auc(score, FORGET))
    assert [found["auc_low"], found["auc_high"]] == pytest.approx(auc_interval(score, FORGET)[1:])
    assert found["auc_low"] < found["matched"] and found["follows"] == []
    # What another run of it would find widens the interval.
    again = [score + i * FORGET for i in range(2)]
    assert separated(score, again)["auc_low"] < found["auc_low"]
    hidden = separated(np.where(FORGET, score, np.nan))
    assert hidden["auc"] is hidden["auc_low"] is hidden["matched"] is None


@pytest.mark.parametrize(
    ("own", "listed", "retain", "act", "said"),
    [
        ({}, {}, {}, "take", "2 of 20 texts are toss-ups: not all 6 rankings list them"),
        ({}, {}, {"upper_bound": 0.68}, "check", "2% of it looks like texts to keep, at most 68%"),
        ({}, {"toss_up": 9}, {}, "check", "9 of 20 texts are toss-ups"),
        ({}, {}, {"upper_bound": 0.8}, "check", "looks like texts to keep is not known; 2 of"),
        ({"auc_low": 0.7, "auc_high": 0.9}, {}, {}, "check", "[0.70, 0.90], up to 0.94 if 5% of"),
        ({"matched_low": 0.6}, {}, {}, "check", ", 0.94 among texts of the same length"),
        ({"auc_low": 0.6}, {}, {}, "refuse", "do not delete by this: weak separation, AUC"),
        ({"auc": None}, {}, {}, "unknown", "no verdict: the ranking has no score for retain texts"),
        ({}, {"toss_up": None, "rankings": 1}, {}, "check", "so its toss-ups are not known"),
    ],
)
def test_the_verdict_is_about_the_list(
    own: dict[str, Any], listed: dict[str, Any], retain: dict[str, Any], act: str, said: str
) -> None:
    nothing = {"auc_low": None, "matched_low": None} if "auc" in own else {}
    found = judge_list({**OWN, **nothing, **own}, 20, {**LISTED, **listed}, {**RETAIN, **retain})
    assert found["judgement"]["act"] == act
    assert said in found["verdict"]
