"""Diagnostics of scores, what a selection costs, and the paper's numbers beside ours."""

import numpy as np
import pytest
from scipy.stats import norm

from mamushi.evidence.calibration import RatioScores
from mamushi.evidence.diagnostics import diagnose, reliability
from mamushi.evidence.geometry import geometry_columns, geometry_summary
from mamushi.evidence.tables import paper_rows
from mamushi.io import schemas

SHIFT = 1.25
RUN_COLUMNS = {"dataset", "model", "seed", "selector"}


def true_ratios(n1: int, n2: int, seed: int = 0) -> RatioScores:
    """log p1/p2 = 2 m x of x ~ N(m, 1) against N(-m, 1): normal, with variance 4 m^2."""
    rng = np.random.default_rng(seed)
    forget = np.arange(n1 + n2) < n1
    x = rng.standard_normal(n1 + n2) + np.where(forget, SHIFT, -SHIFT)
    return RatioScores(2 * SHIFT * x, forget, np.arange(n1 + n2) % 5)


def test_known_densities_give_the_closed_forms() -> None:
    row = diagnose(true_ratios(30000, 60000))
    assert set(row) == set(schemas.DIAGNOSTICS.schema.names) - RUN_COLUMNS
    assert row["forget_mean"] == pytest.approx(2 * SHIFT**2, abs=0.05)
    assert row["forget_sd"] == pytest.approx(2 * SHIFT, abs=0.03)
    assert row["retain_mean"] == pytest.approx(-2 * SHIFT**2, abs=0.05)
    assert row["forget_cov"] == pytest.approx(1 / SHIFT, abs=0.02)
    # The means are 4 m^2 apart, at a deviation of 2 m.
    assert row["fisher"] == pytest.approx(2 * SHIFT, abs=0.03)
    assert row["auc"] == pytest.approx(norm.cdf(np.sqrt(2) * SHIFT), abs=0.003)
    q25, q75 = norm.ppf([0.25, 0.75], 2 * SHIFT**2, 2 * SHIFT)
    assert (row["forget_q25"], row["forget_q75"]) == pytest.approx((q25, q75), abs=0.06)
    assert row["ties"] == 0
    assert row["ece"] is not None
    assert row["ece"] < 0.4 * np.sqrt(15 / 90000)


def test_the_prior_is_restored() -> None:
    """Balanced logits, taken for posteriors, would predict a share of about a half."""
    scores = true_ratios(2000, 38000)
    predicted, observed, count = reliability(scores.score, scores.forget)
    assert (predicted * count).sum() / 40000 == pytest.approx(0.05, abs=0.003)
    assert np.abs(predicted - observed).max() < 0.05


def test_calibration_of_a_few_scores_by_hand() -> None:
    # Two bins; equal numbers, so no prior. Logits -log 3 and log 3 are 1/4 and 3/4.
    score = np.log(3) * np.array([-1.0, -1.0, 1.0, 1.0])
    forget = np.array([False, True, False, True])
    predicted, observed, count = reliability(score, forget)
    np.testing.assert_allclose(predicted, [0.25, 0.75])
    assert (observed.tolist(), count.tolist()) == ([0.5, 0.5], [2, 2])
    assert diagnose(RatioScores(score, forget))["ece"] == pytest.approx(0.25)


def test_the_papers_numbers_stand_beside_ours() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((80, 5)).astype(np.float16)
    columns = geometry_columns(x, np.arange(80) < 30, 5)
    run = {"dataset": "jigsaw", "model": "m", "seed": 1}
    rows = [{**run, **{k: v[i] for k, v in columns.items()}} for i in range(5)]
    row = {**run, "selector": "mamushi", **diagnose(true_ratios(20, 30))}
    other = row | {"selector": "vmf", "auc": 0.1}
    second = [{**one, "seed": 2} for one in rows]
    found = paper_rows([other, row], [*second, *rows], "mamushi")
    assert len(found) == 13 + 2 * 16
    ours = {(one["quantity"], one["seed"]): one["ours"] for one in found}
    paper = {one["quantity"]: (one["paper"], one["setting"]) for one in found}
    assert paper["median principal angle at k = 2, degrees"] == (58, "Llama-3.1-8B, Jigsaw")
    assert ours["AUC, pooled", 1] == row["auc"]
    between = row["forget_q75"] - row["forget_q25"]
    assert ours["forget scores, interquartile range", 1] == between
    quantity = "components with 90% of the discriminative power"
    for seed in (1, 2):
        assert ours[quantity, seed] == geometry_summary(columns)["power_90"]
    assert ours["spectral energy at k = 50, forget", 1] is None
