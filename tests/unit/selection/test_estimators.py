"""Boosted trees and RuLSIF: against computations of their own by hand, and against known ratios."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from scipy.spatial.distance import cdist
from scipy.stats import spearmanr
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss, roc_auc_score

from mamushi.errors import UserError
from mamushi.registry import load, plugin
from mamushi.selection.crossfit import Task, derive_seed
from mamushi.selection.folds import balanced_weights, held_out, stratified_folds
from mamushi.selection.pca import reduce
from mamushi.selection.pool import Pool, Scored
from mamushi.selection.selectors import mamushi_rulsif as rulsif

NAMES = ["mamushi_gbt", "mamushi_rulsif"]
QUICK: dict[str, dict[str, Any]] = {
    "mamushi_gbt": {"folds": 2, "iterations": 15, "leaf_size": 5},
    "mamushi_rulsif": {"folds": 2, "centres": 20, "widths": [1.0, 2.0], "penalties": [0.01, 0.1]},
}


def gaussians(n: int, d: int, separation: float, seed: int = 0) -> Pool:
    """Two Gaussians of equal covariance in the first 4 of d columns, whose ratio is known."""
    rng = np.random.default_rng(seed)
    forget = rng.random(n) < 0.3
    x = rng.normal(0, 1, (n, d))
    shift = np.zeros(d)
    shift[:4] = separation / 2
    x[forget] += shift
    ids = np.array([f"t{i:05d}" for i in range(n)], dtype=object)
    truth = x @ shift - shift @ shift / 2
    return Pool(ids, forget, (5 + 3 * x).astype(np.float16), truth=truth)


@pytest.fixture(scope="module")
def known() -> Pool:
    return gaussians(2500, 4, 1.5)


@pytest.fixture(scope="module")
def small() -> Pool:
    return gaussians(240, 12, 2.0)


def run(name: str, pool: Pool, seed: int = 0, **settings: Any) -> Scored:
    found = {**plugin("selector", name).defaults, **settings}
    scored = load("selector", name).score(pool, found, seed)
    assert isinstance(scored, Scored)
    return scored


def quick(name: str, pool: Pool, seed: int = 0, **settings: Any) -> Scored:
    return run(name, pool, seed, **{**QUICK[name], **settings})


def by_hand(pool: Pool, train: np.ndarray, components: int) -> np.ndarray:
    """All examples on the exact principal axes of the standardised training rows."""
    x = pool.embeddings.astype(np.float64)
    x = (x - x[train].mean(axis=0)) / x[train].std(axis=0)
    axes = np.linalg.svd(x[train], full_matrices=False)[2][:components].T
    axes *= np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(components)])
    return x @ axes


def task_of(pool: Pool, train: np.ndarray, held: np.ndarray, seed: int = 3) -> Task:
    x = pool.embeddings[train].astype(np.float64)
    scale = x.std(axis=0)
    scale[scale == 0] = 1
    return Task(pool.embeddings, pool.forget, train, held, x.mean(axis=0), scale, seed)


@pytest.mark.parametrize(("n", "d", "k"), [(200, 40, 6), (30, 80, 6), (30, 80, 64), (90, 5, 64)])
def test_components_are_those_of_an_exact_pca(n: int, d: int, k: int) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, d)) @ (rng.normal(size=(d, d)) * 0.7 ** np.arange(d))
    pool = dataclasses.replace(gaussians(n, d, 1.0), embeddings=x.astype(np.float16))
    train, held = np.arange(n - 10), np.arange(n - 10, n)
    task = task_of(pool, train, held)
    found = reduce(task, k)
    k = min(k, n - 10, d)
    exact = PCA(k, svd_solver="full").fit(task.features(train).astype(np.float64))
    assert found.details["components"] == k
    assert found.share == pytest.approx(exact.explained_variance_ratio_.sum(), abs=1e-4)
    if k == 6:
        for ours, rows in ((found.train, train), (found.held, held)):
            theirs = exact.transform(task.features(rows).astype(np.float64))
            np.testing.assert_allclose(
                np.abs(ours), np.abs(theirs), atol=2e-3 * np.abs(theirs).max()
            )


def test_trees_are_those_of_a_cross_fit_by_hand(small: Pool) -> None:
    found = quick("mamushi_gbt", small, seed=5, components=6, patience=3, iterations=40, folds=3)
    fold = stratified_folds(small.forget, 3, 5)
    assert found.fold is not None and np.array_equal(found.fold, fold)
    expected = np.empty(len(fold))
    for i in range(3):
        train = np.flatnonzero(fold != i)
        z, y = by_hand(small, train, 6), small.forget
        seed = derive_seed(5, i)
        rest, stop = (train[rows] for rows in held_out(y[train], 0.1, np.random.default_rng(seed)))
        model = HistGradientBoostingClassifier(
            learning_rate=0.05, max_iter=40, max_leaf_nodes=8, min_samples_leaf=5,
            l2_regularization=1.0, early_stopping=False, random_state=0, class_weight="balanced",
        )  # fmt: skip
        # So few rows that every value of the rest has a bin of its own.
        assert len(rest) < 255
        model.fit(z[rest], y[rest])
        weights = balanced_weights(y[stop])
        losses = [
            log_loss(y[stop], 1 / (1 + np.exp(-scores)), sample_weight=weights)
            for scores in model.staged_decision_function(z[stop])
        ]
        best, bad = 0, 0
        for j, loss in enumerate(losses):
            best, bad = (j, 0) if loss < losses[best] or j == 0 else (best, bad + 1)
            if bad == 3:
                break
        assert found.details["per_fold"][i]["trees"] == best + 1
        stages = list(model.staged_decision_function(z[fold == i]))
        expected[fold == i] = stages[best]
    # A held-out value between two training values may fall on the other side of a threshold.
    same = np.isclose(found.scores, expected, atol=1e-6)
    assert same.mean() > 0.9
    assert spearmanr(found.scores, expected).statistic > 0.98


def naive_rulsif(z: np.ndarray, forget: np.ndarray, centres: np.ndarray, width: float, penalty: float, alpha: float) -> np.ndarray:  # fmt: skip  # noqa: E501
    phi = np.exp(-cdist(z, centres, "sqeuclidean") / (2 * width**2))
    one, two = phi[forget], phi[~forget]
    h = alpha * one.T @ one / len(one) + (1 - alpha) * two.T @ two / len(two)
    return np.linalg.solve(h + penalty * np.eye(len(centres)), one.mean(axis=0))


def test_rulsif_is_that_of_a_cross_fit_by_hand(small: Pool) -> None:
    settings = {"folds": 3, "centres": 15, "widths": [0.5, 1.0, 2.0], "penalties": [1e-3, 0.1]}
    found = run("mamushi_rulsif", small, 5, **settings, components=6, inner_folds=4, alpha=0.2)
    fold = stratified_folds(small.forget, 3, 5)
    for i, fit in enumerate(found.details["per_fold"]):
        train, held = np.flatnonzero(fold != i), np.flatnonzero(fold == i)
        z, y = by_hand(small, train, 6), small.forget[train]
        rng = np.random.default_rng(derive_seed(5, i))
        centres = z[train][np.sort(rng.choice(np.flatnonzero(y), 15, replace=False))]
        part = rulsif.inner_parts(y, 4, rng)
        rows = rng.choice(len(train), min(1000, len(train)), replace=False)
        distances = cdist(z[train][rows], centres)
        unit = np.median(distances[distances > 1e-6])
        losses = {}
        for width in (0.5, 1.0, 2.0):
            for penalty in (1e-3, 0.1):
                total = 0.0
                for j in range(4):
                    fitted, out = z[train][part != j], z[train][part == j]
                    theta = naive_rulsif(fitted, y[part != j], centres, width * unit, penalty, 0.2)
                    g = np.exp(-(cdist(out, centres) ** 2) / (2 * (width * unit) ** 2)) @ theta
                    one, two = g[y[part == j]], g[~y[part == j]]
                    total += 0.2 / 2 * (one**2).mean() + 0.8 / 2 * (two**2).mean() - one.mean()
                losses[width, penalty] = total / 4
        width, penalty = min(losses, key=lambda key: losses[key])
        assert fit["width"] == pytest.approx(width * unit, rel=1e-4)
        assert fit["penalty"] == penalty
        assert fit["loss"] == pytest.approx(losses[width, penalty], rel=1e-4)
        theta = naive_rulsif(z[train], y, centres, width * unit, penalty, 0.2)
        g = np.exp(-(cdist(z[held], centres) ** 2) / (2 * (width * unit) ** 2)) @ theta
        inside = (g > 1e-3) & (g < 4.9)
        assert inside.mean() > 0.5
        expected = np.log(0.8 * g[inside] / (1 - 0.2 * g[inside]))
        np.testing.assert_allclose(found.scores[held][inside], expected, atol=2e-2)


def test_the_ratio_is_recovered_from_the_relative_one() -> None:
    truth = np.linspace(-7.9, 7.9, 50)
    for alpha in (0.0, 0.1, 0.9):
        relative = np.exp(truth) / (alpha * np.exp(truth) + 1 - alpha)
        scores, clipped = rulsif.log_ratio(relative, alpha, 8.0)
        np.testing.assert_allclose(scores, truth, atol=1e-9)
        assert clipped == 0
    scores, clipped = rulsif.log_ratio(np.array([-3.0, 0.0, 1.0, 10.0, 50.0]), 0.1, 8.0)
    np.testing.assert_allclose(scores, [-8, -8, 0, 8, 8], atol=1e-9)
    assert clipped == 4
    assert np.isfinite(rulsif.log_ratio(np.array([-1e300, 1e300]), 0.1, 20.0)[0]).all()


@pytest.mark.parametrize("name", NAMES)
def test_scores_follow_the_true_ratio(known: Pool, name: str) -> None:
    found = run(name, known, components=4, folds=3)
    truth = known.truth
    assert truth is not None
    assert spearmanr(found.scores[known.forget], truth[known.forget]).statistic > 0.93
    assert found.details["auc"] == pytest.approx(roc_auc_score(known.forget, found.scores))
    assert found.details["auc"] > roc_auc_score(known.forget, truth) - 0.02
    # Not in rank alone: where data are plenty the scores are nats, without the prior log-odds.
    plenty = np.abs(truth) < 2
    assert np.abs(np.median((found.scores - truth)[plenty])) < 0.25
    assert len(found.details["per_fold"]) == 3
    assert {"auc", "offset", "components", "variance"} <= found.details["per_fold"][0].keys()


@pytest.mark.parametrize("name", NAMES)
def test_seed_decides_everything(small: Pool, name: str) -> None:
    first = quick(name, small)
    assert np.array_equal(first.scores, quick(name, small).scores)
    assert not np.array_equal(first.scores, quick(name, small, 1).scores)


@pytest.mark.parametrize("name", NAMES)
def test_own_label_has_no_influence_on_own_score(
    small: Pool, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the folds as they were, exchanging labels within fold 0 leaves fold 0's scores alone."""
    first = quick(name, small)
    assert first.fold is not None
    fold = first.fold
    monkeypatch.setattr("mamushi.selection.crossfit.stratified_folds", lambda *_: fold)
    forget = small.forget.copy()
    forget[fold == 0] = ~forget[fold == 0]
    second = quick(name, dataclasses.replace(small, forget=forget))
    assert np.array_equal(second.scores[fold == 0], first.scores[fold == 0])
    assert not np.array_equal(second.scores[fold == 1], first.scores[fold == 1])


@pytest.mark.parametrize("name", NAMES)
def test_labels_of_noise_are_not_predicted(name: str) -> None:
    noise = gaussians(1200, 8, 0.0, seed=2)
    assert abs(quick(name, noise).details["auc"] - 0.5) < 0.06


@pytest.mark.parametrize("name", NAMES)
def test_constant_embeddings_give_constant_scores_in_a_fold(small: Pool, name: str) -> None:
    same = dataclasses.replace(small, embeddings=np.full((240, 12), 3, np.float16))
    found = quick(name, same)
    assert found.fold is not None and np.isfinite(found.scores).all()
    for i, fit in enumerate(found.details["per_fold"]):
        assert np.ptp(found.scores[found.fold == i]) < 1e-12
        assert abs(found.scores[found.fold == i][0]) < 0.2
        assert fit["variance"] == 0
        assert fit["auc"] == 0.5


@pytest.mark.parametrize("name", NAMES)
def test_duplicates_score_alike_and_more_columns_than_rows_are_fine(name: str) -> None:
    wide = gaussians(60, 200, 6.0)
    found = quick(name, wide, components=500)
    assert found.details["per_fold"][0]["components"] == (found.fold != 0).sum()
    assert found.details["auc"] > 0.6
    doubled = gaussians(120, 6, 3.0)
    doubled.embeddings[60:] = doubled.embeddings[:60]
    copies = quick(name, doubled)
    assert copies.fold is not None and np.isfinite(copies.scores).all()
    together = copies.fold[:60] == copies.fold[60:]
    assert together.any()
    np.testing.assert_allclose(
        copies.scores[:60][together], copies.scores[60:][together], atol=1e-9
    )


@pytest.mark.parametrize("name", NAMES)
def test_few_forget_examples(small: Pool, name: str) -> None:
    few = dataclasses.replace(small, forget=np.arange(240) < 4)
    with pytest.raises(UserError, match="5 folds need at least 5 forget examples, there are 4"):
        run(name, few)
    for folds in (2, 3, 4):
        assert np.isfinite(quick(name, few, folds=folds).scores).all()


def test_the_median_distance_leaves_out_copies() -> None:
    z = np.array([[0.0, 0], [0, 0], [3, 4], [6, 8]])
    rng = np.random.default_rng(0)
    assert rulsif.median_distance(z, z[:1], rng) == pytest.approx(7.5)
    assert rulsif.median_distance(np.zeros((4, 2)), np.zeros((2, 2)), rng) == 1.0


def test_kernels_do_not_depend_on_the_size_of_the_blocks(
    small: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = {name: quick(name, small).scores for name in NAMES}
    monkeypatch.setattr(rulsif, "BLOCK_BYTES", 20 * 8 * 7)
    monkeypatch.setattr("mamushi.selection.pca.BLOCK_BYTES", 12 * 8 * 7)
    for name in NAMES:
        np.testing.assert_allclose(quick(name, small).scores, whole[name], atol=1e-6)


BAD = {
    "mamushi_gbt": {"learning_rate": 0, "iterations": 0, "leaves": 1, "l2": -1, "patience": 0},
    "mamushi_rulsif": {"alpha": 1, "centres": 0, "widths": [], "penalties": [0], "limit": 100},
}


@pytest.mark.parametrize("name", NAMES)
def test_settings_have_valid_defaults_and_refuse_bad_values(name: str) -> None:
    found = plugin("selector", name)
    assert found.defaults.keys() == found.settings.keys()
    assert found.defaults["components"] == 64
    for key, rule in found.settings.items():
        assert Draft202012Validator(rule).is_valid(found.defaults[key])
    for key, value in {**BAD[name], "components": 0, "folds": 1}.items():
        assert not Draft202012Validator(found.settings[key]).is_valid(value)
