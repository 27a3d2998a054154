"""The ratio from scores on a wrong scale, or of noisy estimators, where the truth is known."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression

from mamushi.errors import UserError
from mamushi.evidence.calibration import (
    PARTED,
    PARTS,
    RatioScores,
    discrimination,
    read_scores,
)
from mamushi.evidence.frontier import Frontier, removal_order
from mamushi.io import schemas
from mamushi.io.tables import write_table
from mamushi.selection.folds import stratified_folds
from tests.support.score_files import scores_table

# The scale ----------------------------------------------------------------------------------------


def normals(n1: int, n2: int, apart: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Exact log ratios of N(apart/2, 1) against N(-apart/2, 1), forget texts first."""
    rng = np.random.default_rng(seed)
    x = np.concatenate([rng.normal(apart / 2, 1, n1), rng.normal(-apart / 2, 1, n2)])
    return apart * x, np.arange(n1 + n2) < n1


def test_the_offsets_of_folds_are_taken_out() -> None:
    exactly, forget = normals(1000, 3000, 2.0)
    fold = stratified_folds(forget, 5, 0).astype(np.int64)
    shifted = exactly + np.array([-1.5, -0.5, 0.0, 0.5, 1.5])[fold]

    def ratio(score: np.ndarray, fold: np.ndarray) -> np.ndarray:
        return RatioScores(score, forget, fold).estimate().log_ratio

    # Held back by the penalty a little, since folds of few texts could be offset by chance.
    assert np.abs(ratio(shifted, fold) - ratio(exactly, fold)).mean() < 0.35
    assert np.abs(ratio(shifted, np.zeros_like(fold)) - ratio(exactly, fold)).mean() > 0.7


def test_a_ratio_is_a_logistic_regression_of_other_texts_less_the_prior() -> None:
    """Where texts occur more than once, one of all."""
    exactly, forget = normals(80, 160, 1.0)
    x, scores = exactly[:, None], RatioScores(100 + 0.01 * exactly, forget)
    times = np.random.default_rng(0).integers(0, 3, 240).astype(float)
    dealt = stratified_folds(forget, PARTS, PARTED)
    parts = [(dealt == number, (dealt != number) * 1.0, None) for number in range(PARTS)]
    for out, weights, again in (*parts, (dealt >= 0, times, times)):
        fitted = LogisticRegression(C=1e8, tol=1e-10).fit(x, forget, sample_weight=weights)
        prior = np.log(weights[forget].sum() / weights[~forget].sum())
        found = scores.estimate(again).log_ratio[out]
        assert found == pytest.approx(fitted.decision_function(x[out]) - prior, abs=1e-4)


# What scores have lost ----------------------------------------------------------------------------

APART, NOISE = 2.0, 1.5
"""Of the domains, and the variance of the error of a score."""


@pytest.fixture(scope="module")
def noisy() -> RatioScores:
    """A noisy score of exact log ratios with two noisier halves; folds are shifted."""
    exactly, forget = normals(8000, 12_000, APART)
    rng = np.random.default_rng([0, 1])
    fold = stratified_folds(forget, 5, 0).astype(np.int64)
    n = len(forget)
    score = exactly + rng.normal(0, np.sqrt(NOISE), n) + 0.3 * fold
    a, b = exactly + rng.normal(0, 2 * np.sqrt(NOISE), (2, n)) + rng.normal(size=(2, 5))[:, fold]
    return RatioScores(score, forget, fold, [(a, b, fold)])


def test_two_halves_tell_what_a_score_without_noise_would(noisy: RatioScores) -> None:
    ((first, second, _),), ones = noisy.halves, np.ones(20_000)

    def of(a: np.ndarray, b: np.ndarray) -> float:
        return discrimination(a, b, noisy.forget, noisy.fold, ones)

    own, both = of(noisy.score, noisy.score), of(first, second)
    assert own == pytest.approx(APART**4 / (APART**2 + NOISE), rel=0.05)
    assert of(first, first) == pytest.approx(APART**4 / (APART**2 + 4 * NOISE), rel=0.05)
    assert both == pytest.approx(APART**2, rel=0.05)
    spread = APART**2 * NOISE / (APART**2 + NOISE)
    assert noisy.estimate().lost == pytest.approx(spread, rel=0.15)
    assert noisy.estimate().kept == pytest.approx(own / both)


def test_a_divergence_of_a_noisy_score_is_a_lower_bound_until_its_loss_is_put_back(
    noisy: RatioScores,
) -> None:
    """KL(p1 || p2), which is removal at budget 1."""
    estimate, forget, everything = noisy.estimate(), noisy.forget, np.array([8000])
    order = removal_order(scores_table(noisy.score, forget))
    raw = Frontier(estimate.log_ratio, forget).at(order, everything)[0][0]
    assert raw < 0.8 * APART**2 / 2
    mended = Frontier(estimate.log_ratio, forget, estimate.lost).at(order, everything)[0][0]
    assert mended == pytest.approx(APART**2 / 2, rel=0.07)


def test_refits_of_other_texts_are_refused(tmp_path: Path) -> None:
    table = scores_table(np.arange(6.0), np.arange(6) < 3)
    write_table(tmp_path / "scores", schemas.SCORES, table)
    numbered = table.append_column("part", pa.repeat("whole", 6))
    again = numbered.append_column("refit", pa.repeat(pa.scalar(0, pa.int16()), 6))
    write_table(tmp_path / "refits", schemas.REFITS, again.select(schemas.REFITS.schema.names))
    assert len(read_scores(tmp_path / "scores", tmp_path / "refits").refits) == 1
    reordered = again.select(schemas.REFITS.schema.names).take([1, 0, 2, 3, 4, 5])
    write_table(tmp_path / "refits", schemas.REFITS, reordered)
    with pytest.raises(UserError, match="its examples are not those of"):
        read_scores(tmp_path / "scores", tmp_path / "refits")
