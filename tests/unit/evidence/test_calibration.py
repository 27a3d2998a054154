"""The ratio from scores on a wrong scale, or of noisy estimators, where the truth is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression

from mamushi.evidence import calibration
from mamushi.evidence.advice import predicted_budget
from mamushi.evidence.bootstrap import bands
from mamushi.evidence.calibration import (
    PARTED,
    PARTS,
    HalfScores,
    RatioScores,
    discrimination,
    platt,
)
from mamushi.evidence.frontier import Frontier, RemovalOrder, removal_order
from mamushi.evidence.verdict import (
    CHECKS,
    NORMAL,
    auc_interval,
    judge_scores,
    ratio_checks,
    share_bound,
)
from mamushi.selection.folds import stratified_folds

BUDGETS = np.linspace(0, 1, 51)
Row = dict[str, Any]


def ranked(score: np.ndarray, forget: np.ndarray) -> RemovalOrder:
    """The ranking by a score, of its forget texts."""
    one = score[forget]
    rank = np.empty(len(one))
    rank[np.argsort(-one, kind="stable")] = np.arange(1, len(one) + 1)
    return removal_order(one, rank, score[~forget], by_chance=False)


def advised(scores: RatioScores, target: str, value: float) -> Row:
    """What is advised of the ranking by the score itself."""
    n1 = int(scores.forget.sum())
    counts = np.unique(np.round(BUDGETS * n1).astype(np.int64))
    band = bands(scores, {"own": ranked(scores.score, scores.forget)}, counts, 60, 0)["own"]
    curve = [
        {"beta": k / n1, "withheld": None}
        | {
            f"{name}{end}": float(getattr(band[name], part)[i])
            for name in ("gain", "preservation")
            for end, part in (("", "value"), ("_low", "low"), ("_high", "high"))
        }
        for i, k in enumerate(counts)
    ]
    return dict(predicted_budget([curve], target, value))


# The scale ----------------------------------------------------------------------------------------


def normals(n1: int, n2: int, apart: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Exact log ratios of N(apart/2, 1) against N(-apart/2, 1), forget texts first."""
    rng = np.random.default_rng(seed)
    x = np.concatenate([rng.normal(apart / 2, 1, n1), rng.normal(-apart / 2, 1, n2)])
    return apart * x, np.arange(n1 + n2) < n1


@pytest.mark.parametrize("scale", [1.25, 2.0])
def test_scores_on_a_wrong_scale_advise_what_the_exact_ratio_does(scale: float) -> None:
    """Of N(1, 1) and N(-1, 1) with pi1 = 0.1 it takes about 0.35 until KL(p2 || p_-S) is 0.01."""
    exactly, forget = normals(600, 5400, 2.0)
    fold = stratified_folds(forget, 5, 0).astype(np.int64)
    scores = RatioScores(scale * exactly, forget, fold)
    found = advised(scores, "preservation", 0.01)
    assert found["reason"] is None
    assert found["budget"] == pytest.approx(0.35, abs=0.08)
    assert found["budget_low"] <= 0.35 <= found["budget_high"]
    # A divergence below 0, that calibration takes away.
    own, u = ranked(exactly, forget), scores.estimate().log_ratio
    wrong = Frontier(own, scale * exactly[forget], scale * exactly[~forget], 0.1)
    assert (wrong.at(np.array([0]))[1][0] < -0.02) == (scale == 2)
    assert Frontier(own, u[forget], u[~forget], 0.1).at(np.array([0]))[1][0] > 0


@pytest.mark.parametrize("seed", [0, 1])
def test_the_offsets_of_folds_are_taken_out(seed: int) -> None:
    """Whichever way the folds were dealt: they are never the parts that the fits leave out."""
    exactly, forget = normals(1000, 3000, 2.0)
    fold = stratified_folds(forget, 5, seed).astype(np.int64)
    offsets = np.array([-1.5, -0.5, 0.0, 0.5, 1.5])
    plain = RatioScores(exactly, forget, fold).estimate().log_ratio
    u = RatioScores(exactly + offsets[fold], forget, fold).estimate().log_ratio
    # Held back by the penalty a little, since folds of few texts could be offset by chance.
    assert np.abs(u - plain).mean() < 0.35
    unmended = (
        RatioScores(exactly + offsets[fold], forget, np.zeros_like(fold)).estimate().log_ratio
    )
    assert np.abs(unmended - plain).mean() > 0.7


@pytest.mark.parametrize("rows", [2**20, 97])
@pytest.mark.parametrize("weighted", [False, True])
def test_platt_is_a_logistic_regression_less_the_prior(
    weighted: bool, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibration, "_ROWS", rows)
    exactly, forget = normals(300, 900, 1.5)
    weights = np.random.default_rng(0).integers(0, 3, 1200).astype(float)
    weights = weights if weighted else np.ones(1200)
    score, nowhere = 100 + 0.01 * exactly, np.zeros(1200, dtype=np.int64)
    found = platt(score, forget, nowhere, weights)
    x = ((score - 100) / 0.01)[:, None]
    wanted = LogisticRegression(C=1e8, tol=1e-10).fit(x, forget, sample_weight=weights)
    prior = np.log(weights[forget].sum() / weights[~forget].sum())
    logits = wanted.decision_function(x) - prior
    assert found(score, nowhere) == pytest.approx(logits, abs=1e-5)


def test_a_ratio_comes_from_a_fit_to_other_texts() -> None:
    exactly, forget = normals(80, 160, 1.0)
    fold = stratified_folds(forget, 4, 1).astype(np.int64)
    estimate = RatioScores(exactly, forget, fold).estimate().log_ratio
    part = stratified_folds(forget, PARTS, PARTED)
    for number in range(PARTS):
        held = part == number
        rest = platt(exactly[~held], forget[~held], fold[~held], np.ones((~held).sum()))
        assert estimate[held] == pytest.approx(rest(exactly[held], fold[held]), abs=1e-9)
    # What is found of a text moves nothing of its own part, and all of the others.
    other = exactly.copy()
    other[0] += 3
    moved = RatioScores(other, forget, fold).estimate().log_ratio != estimate
    own = (part == part[0]) & (np.arange(240) > 0)
    assert not moved[own].any()
    assert moved[~own].all()


# What scores have lost ----------------------------------------------------------------------------

APART, NOISE = 2.0, 1.5
"""Of the domains, and the variance of the error of a score."""


def noisy(n1: int, n2: int, seed: int = 0) -> tuple[np.ndarray, RatioScores]:
    """Exact log ratios, and a noisy score of them with two noisier halves; folds are shifted."""
    exactly, forget = normals(n1, n2, APART, seed)
    rng = np.random.default_rng([seed, 1])
    fold = stratified_folds(forget, 5, seed).astype(np.int64)
    n = len(forget)
    score = exactly + rng.normal(0, np.sqrt(NOISE), n) + 0.3 * fold
    a, b = exactly + rng.normal(0, 2 * np.sqrt(NOISE), (2, n)) + rng.normal(size=(2, 5))[:, fold]
    return exactly, RatioScores(score, forget, fold, [HalfScores(a, b, fold)])


def test_two_halves_tell_what_a_score_without_noise_would() -> None:
    _, scores = noisy(8000, 12_000)
    (pair,), ones = scores.halves, np.ones(20_000)
    own = discrimination(scores.score, scores.score, scores.forget, scores.fold, ones)
    assert own == pytest.approx(APART**4 / (APART**2 + NOISE), rel=0.05)
    half = discrimination(pair.a, pair.a, scores.forget, pair.fold, ones)
    assert half == pytest.approx(APART**4 / (APART**2 + 4 * NOISE), rel=0.05)
    both = discrimination(pair.a, pair.b, scores.forget, pair.fold, ones)
    assert both == pytest.approx(APART**2, rel=0.05)
    spread = APART**2 * NOISE / (APART**2 + NOISE)
    assert scores.estimate().lost == pytest.approx(spread, rel=0.15)
    assert scores.kept() == pytest.approx(own / both)


def test_a_divergence_of_a_noisy_score_is_a_lower_bound_until_its_loss_is_put_back() -> None:
    """KL(p1 || p2), which is removal at budget 1."""
    _, scores = noisy(8000, 12_000)
    estimate, forget = scores.estimate(), scores.forget
    l1, l2 = estimate.log_ratio[forget], estimate.log_ratio[~forget]
    ranks, whole = ranked(scores.score, forget), np.array([8000])
    assert Frontier(ranks, l1, l2, 0.4).at(whole)[0][0] < 0.8 * APART**2 / 2
    mended = Frontier(ranks, l1, l2, 0.4, estimate.lost).at(whole)[0][0]
    assert mended == pytest.approx(APART**2 / 2, rel=0.07)


# The verdict --------------------------------------------------------------------------------------


def test_the_interval_of_an_auc_has_twice_delongs_variance() -> None:
    """By the definition of his components, with ties."""
    one, two = np.array([3.0, 5, 5, 2, 7]), np.array([1.0, 2, 5, 0, 4, 2])
    wins = (one[:, None] > two) + 0.5 * (one[:, None] == two)
    error = np.sqrt(2 * (wins.mean(1).var(ddof=1) / 5 + wins.mean(0).var(ddof=1) / 6))
    score, forget = np.concatenate([one, two]), np.arange(11) < 5
    value, low, high = auc_interval(score, forget)
    assert value == pytest.approx(wins.mean())
    assert low == pytest.approx(max(wins.mean() - NORMAL * error, 0))
    assert high == pytest.approx(min(wins.mean() + NORMAL * error, 1))
    wider = auc_interval(score, forget, [score, -score, score])
    assert wider[0] == value
    assert wider[1] < low


@pytest.mark.parametrize("apart", [0.0, 0.5, 1.5])
def test_the_interval_holds_the_auc_of_a_ranking_that_is_learned(apart: float) -> None:
    """Cross-fitted differences of means, against the AUC of the one that learns from all texts on
    texts without end; of two equal domains that is 0.5."""
    rng, n, width = np.random.default_rng(0), 200, 8
    forget = np.arange(n) < 60
    held = []
    for seed in range(300):
        x = rng.normal(size=(n, width))
        x[:, 0] += apart * forget
        fold = stratified_folds(forget, 5, seed)
        score = np.empty(n)
        for i in range(5):
            rest = fold != i
            learned = x[rest & forget].mean(axis=0) - x[rest & ~forget].mean(axis=0)
            score[~rest] = x[~rest] @ learned
        learned = x[forget].mean(axis=0) - x[~forget].mean(axis=0)
        truth = norm.cdf(apart * learned[0] / np.sqrt(2 * learned @ learned))
        _, low, high = auc_interval(score, forget)
        held.append(low <= truth <= high)
    assert np.mean(held) >= 0.93


def test_two_equal_domains_are_refused() -> None:
    refused = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        forget = np.arange(300) < 100
        fold = stratified_folds(forget, 5, 0).astype(np.int64)
        a, b, score = rng.normal(size=(3, 300))
        scores = RatioScores(score, forget, fold, [HalfScores(a, b, fold)])
        found = judge_scores(scores, [], ratio_checks(scores, scores.estimate(), 5, 0))
        refused.append(found["reason"] is not None)
        if found["auc_low"] <= 0.55:
            seen = "AUC {auc:.2f} [{auc_low:.2f}, {auc_high:.2f}]".format(**found)
            assert found["reason"] == f"the domains cannot be told apart: {seen}"
            assert found["words"].startswith("no budget can be named: ")
    assert np.mean(refused) == 1


def test_a_ratio_that_is_surely_off_is_refused_and_noise_too() -> None:
    exactly, forget = normals(400, 600, 3.0)
    fold = np.zeros(1000, dtype=np.int64)

    def reason(value: float, low: float, high: float) -> Any:
        row = {"check": "psi_over_phi", "value": value, "low": low, "high": high}
        row["holds"] = low <= 1 <= high
        return judge_scores(RatioScores(exactly, forget, fold), [], [row])["reason"]

    assert reason(1.5, 1.3, 1.7) == (
        "the scores fail the ratio check: E_p1[psi] / E_p2[phi] is 1.50 [1.30, 1.70] instead of 1"
    )
    assert reason(0.7, 0.6, 0.79) is not None
    assert reason(1.3, 1.2, 1.4) is reason(1.5, 0.9, 2.1) is None
    score = exactly + np.random.default_rng(0).normal(0, 6, 1000)
    noisy = judge_scores(
        RatioScores(score, forget, fold, [HalfScores(exactly, exactly, fold)]), [], []
    )
    assert noisy["auc_low"] > 0.55
    assert noisy["words"].startswith("no budget can be named: the scores are m")


def test_the_checks_hold_of_the_exact_ratio_and_of_no_other_scale() -> None:
    exactly, forget = normals(3000, 5000, 1.5)
    scores = RatioScores(exactly, forget, np.zeros(8000, dtype=np.int64))

    def held(log_ratio: np.ndarray) -> dict[str, bool]:
        estimate = type(scores.estimate())(log_ratio, 0.0, 1.0)
        rows = ratio_checks(scores, estimate, 60, 0)
        assert {row["check"]: row["expected"] for row in rows} == CHECKS
        assert all(row["low"] <= row["high"] for row in rows)
        return {row["check"]: row["holds"] for row in rows}

    assert all(held(exactly).values())
    assert not {name for name in ("slope", "psi_over_phi") if held(1.5 * exactly)[name]}
    shifted = held(exactly + 0.5)
    assert not shifted["intercept"] and not shifted["psi_over_phi"]


def test_the_bound_on_the_retain_share_holds_at_all_thresholds_at_once() -> None:
    """Of uniform scores, of which 1 - t lie above t, in about 97.5% of samples."""
    rng = np.random.default_rng(0)
    worst = []
    for _ in range(300):
        score = rng.random(100)
        # The share above falls at the scores, and next to them is the furthest from the truth.
        bounds = [share_bound(score, np.nextafter(t, 2), 1.0)[1] + t - 1 for t in score]
        worst.append(min(bounds))
    assert 0.96 <= np.mean(np.array(worst) >= -1e-9) < 1
    assert share_bound(np.array([0.1, 0.5, 0.9]), 0.5, 0.8)[0] == pytest.approx(2 / 3 / 0.8)
    assert share_bound(np.array([0.1, 0.5, 0.9]), 0.5, 0.1) == (1, 1)
