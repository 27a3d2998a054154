"""The cross-fitted estimators: the torch MLP against scikit-learn and against known ratios."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

from mamushi.errors import UserError
from mamushi.registry import load, plugin
from mamushi.selection import mlp
from mamushi.selection.crossfit import Task, cross_fit
from mamushi.selection.folds import balanced_weights, stratified_folds
from mamushi.selection.pool import Pool
from mamushi.selection.reference import logits

SMALL = {"hidden": [32, 16], "batch_size": 256, "precision": "fp32", "folds": 3}


@pytest.fixture(scope="module")
def pool():
    """Two Gaussians of equal covariance, whose log-density ratio is linear in x."""
    rng = np.random.default_rng(0)
    forget = rng.random(3000) < 0.25
    x = rng.normal(0, 1, (3000, 10))
    shift = np.linspace(0.1, 0.9, 10)
    x[forget] += shift
    truth = x @ shift - shift @ shift / 2
    ids = np.array([f"t{i:05d}" for i in range(3000)], dtype=object)
    return Pool(ids, forget, (5 + 3 * x).astype(np.float16), truth=truth)


def run(name, pool, seed=0, **settings):
    return load("selector", name).score(
        pool, {**plugin("selector", name).defaults, **settings}, seed
    )


@pytest.fixture(scope="module")
def scored(pool):
    return run("mamushi", pool, **SMALL)


def recipe(**changes):
    rest = {**plugin("selector", "mamushi").defaults, **SMALL, **changes}
    for key in ("estimator", "folds", "seeds_averaged"):
        rest.pop(key)
    return mlp.Recipe(**rest)


def test_scores_follow_the_true_ratio(pool, scored):
    found = spearmanr(scored.scores[pool.forget], pool.truth[pool.forget]).statistic
    assert found > 0.95
    # Not in rank alone: balanced weights leave no prior log-odds, here log(1/3) = -1.1.
    assert abs(np.median(scored.scores - pool.truth)) < 0.25


def test_auc_is_that_of_the_reference(pool, scored):
    fold = stratified_folds(pool.forget, 3, 0)
    assert np.array_equal(scored.fold, fold)
    out = np.empty(len(fold))
    for i in range(3):
        train = fold != i
        scaler = StandardScaler().fit(pool.embeddings[train].astype(np.float32))
        model = MLPClassifier(
            (32, 16), alpha=0.1, batch_size=256, max_iter=50, early_stopping=True, tol=1e-4,
            n_iter_no_change=5, random_state=0,
        )  # fmt: skip
        y = pool.forget[train]
        x = scaler.transform(pool.embeddings.astype(np.float32))
        model.fit(x[train], y, sample_weight=balanced_weights(y))
        out[~train] = logits(model, x[~train])
    ours, theirs = (roc_auc_score(pool.forget, s) for s in (scored.scores, out))
    assert scored.details["auc"] == pytest.approx(ours, abs=1e-12)
    assert ours > theirs - 0.01
    bayes = roc_auc_score(pool.forget, pool.truth)
    assert ours > bayes - 0.02


def test_details_of_the_folds(pool, scored):
    per_fold = scored.details["per_fold"]
    assert len(per_fold) == 3
    for i, fit in enumerate(per_fold):
        held = scored.fold == i
        forget = pool.forget[held]
        assert fit["auc"] == pytest.approx(roc_auc_score(forget, scored.scores[held]), abs=1e-12)
        one = fit["fits"][0]
        assert 1 <= one["best_epoch"] <= one["epochs"] <= 50
        assert one["precision"] == "fp32"
    assert abs(np.mean([fit["offset"] for fit in per_fold])) < 1e-3
    assert any(fit["offset"] for fit in per_fold)


def test_seed_decides_everything(pool, scored):
    assert np.array_equal(run("mamushi", pool, **SMALL).scores, scored.scores)
    assert not np.array_equal(run("mamushi", pool, 1, **SMALL).scores, scored.scores)


def test_no_example_is_scored_by_a_network_that_saw_it(pool):
    """Labels of noise cannot be predicted out of fold; a leak would predict them."""
    rng = np.random.default_rng(3)
    noise = dataclasses.replace(pool, forget=rng.permutation(pool.forget))
    assert abs(run("mamushi", noise, **SMALL).details["auc"] - 0.5) < 0.05


def test_statistics_come_from_the_training_folds(pool):
    seen = []

    def spy(task: Task):
        x = pool.embeddings[task.train].astype(np.float64)
        np.testing.assert_allclose(task.mean, x.mean(axis=0), rtol=1e-12)
        np.testing.assert_allclose(task.scale, x.std(axis=0), rtol=1e-12)
        np.testing.assert_allclose(task.features(task.train).mean(axis=0), 0, atol=1e-5)
        assert not np.intersect1d(task.train, task.held).size
        seen.extend(task.held)
        return np.arange(len(task.held), dtype=float), {}

    cross_fit(pool, 4, 0, spy, "spy")
    assert sorted(seen) == list(range(3000))


def test_gradient_is_that_of_scikit_learn():
    """One full-batch SGD step of MLPClassifier at learning rate 1 shows its gradient."""
    rng = np.random.default_rng(0)
    x = rng.normal(0, 1, (40, 7))
    y = rng.random(40) < 0.3
    w = balanced_weights(y)

    def parameters(learning_rate):
        model = MLPClassifier(
            (5, 4), alpha=0.7, solver="sgd", momentum=0, learning_rate_init=learning_rate,
            max_iter=1, batch_size=40, random_state=0,
        )  # fmt: skip
        with pytest.warns(ConvergenceWarning):
            model.fit(x, y, sample_weight=w)
        return model.coefs_, model.intercepts_

    (start, start_bias), (moved, moved_bias) = parameters(1e-300), parameters(1.0)
    network = mlp.glorot_network([7, 5, 4, 1], rng)
    linear = [layer for layer in network if isinstance(layer, torch.nn.Linear)]
    with torch.no_grad():
        for layer, weight, bias in zip(linear, start, start_bias, strict=True):
            layer.weight.copy_(torch.from_numpy(weight.T))
            layer.bias.copy_(torch.from_numpy(bias))
    x, y, w = (torch.tensor(a, dtype=torch.float32) for a in (x, y, w))
    mlp.gradients(network, x, y, w, alpha=0.7)
    for i, layer in enumerate(linear):
        gradient, bias_gradient = start[i] - moved[i], start_bias[i] - moved_bias[i]
        np.testing.assert_allclose(layer.weight.grad.numpy(), gradient.T, atol=2e-6)
        np.testing.assert_allclose(layer.bias.grad.numpy(), bias_gradient, atol=2e-6)


def test_weights_start_as_glorot_drew_them():
    network = mlp.glorot_network([300, 200, 1], np.random.default_rng(0))
    first = network[0].weight.detach().numpy()
    bound = np.sqrt(6 / 500)
    assert np.abs(first).max() <= bound
    assert first.std() == pytest.approx(bound / np.sqrt(3), rel=0.02)
    assert 0 < network[0].bias.abs().max() <= bound


def fit_counting(losses, monkeypatch, **changes):
    """Epochs and best epoch when the held-out losses are these."""
    left = iter(losses)
    monkeypatch.setattr(mlp, "held_out_loss", lambda *_: next(left))
    rng = np.random.default_rng(0)
    x = torch.tensor(rng.normal(0, 1, (60, 3)), dtype=torch.float32)
    states = []
    step = mlp.step
    monkeypatch.setattr(
        mlp,
        "step",
        lambda network, *rest: (step(network, *rest), states.append(network[0].weight.clone())),
    )
    network, details = mlp.train(
        lambda rows: x[rows],
        np.arange(60),
        rng.random(60) < 0.5,
        recipe(hidden=[4], **changes),
        0,
        torch.device("cpu"),
    )
    assert torch.equal(network[0].weight, states[details["best_epoch"] - 1])
    return details["epochs"], details["best_epoch"]


def test_early_stopping_is_scikit_learns_rule(monkeypatch):
    """More than `patience` bad epochs in a row; one that falls too little may yet be the best."""
    falls = [1.0, 0.9, 0.89995, 0.8999, 0.95, 0.95, 0.95, 0.95]
    assert fit_counting(falls, monkeypatch, patience=2) == (5, 4)
    resets = [1.0, 1.1, 1.1, 0.9, 1.0, 1.0, 1.0]
    assert fit_counting(resets, monkeypatch, patience=2) == (7, 4)
    assert fit_counting([3.0, 2.0, 1.0], monkeypatch, epochs=3) == (3, 3)


def test_held_out_loss_is_the_weighted_cross_entropy():
    rng = np.random.default_rng(0)
    x, y = rng.normal(0, 1, (50, 3)).astype(np.float32), rng.random(50) < 0.4
    w = balanced_weights(y).astype(np.float32)
    network = mlp.glorot_network([3, 4, 1], rng)
    held = np.arange(10, 45)
    found = mlp.held_out_loss(
        network,
        lambda rows: torch.from_numpy(x[rows]),
        np.arange(50),
        held,
        torch.from_numpy(y.astype(np.float32)),
        torch.from_numpy(w),
        8,
        False,
    )
    probability = torch.sigmoid(network(torch.from_numpy(x[held]))).detach().numpy()[:, 0]
    assert found == pytest.approx(log_loss(y[held], probability, sample_weight=w[held]), rel=1e-5)


def test_bf16_trains_to_the_same_ranking_without_ties(pool, scored):
    found = run("mamushi", pool, **{**SMALL, "precision": "bf16"})
    forget = pool.forget
    assert found.details["per_fold"][0]["fits"][0]["precision"] == "bf16"
    assert spearmanr(found.scores[forget], scored.scores[forget]).statistic > 0.95
    assert len(np.unique(found.scores[forget])) > 0.99 * forget.sum()


def test_precision_follows_the_hardware(monkeypatch):
    cpu = torch.device("cpu")
    for flags, expected in (({"avx512_bf16": True}, True), ({"amx_bf16": True}, True), ({}, False)):
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda flags=flags: flags)
        assert mlp.use_bf16("auto", cpu) is expected
    assert mlp.use_bf16("bf16", cpu) is True
    assert mlp.use_bf16("fp32", cpu) is False


def test_averaged_seeds_are_the_mean_of_their_networks(pool, monkeypatch):
    seen = []
    estimate = mlp.estimate_mlp

    def spy(task, recipe):
        found = estimate(task, recipe)
        seen.append((task.held, found[0], task.seed))
        return found

    monkeypatch.setattr(mlp, "estimate_mlp", spy)
    found = run("mamushi", pool, **{**SMALL, "epochs": 2, "seeds_averaged": 2})
    assert len({seed for _, _, seed in seen}) == 6
    for (held, first, _), (_, second, _) in zip(seen[::2], seen[1::2], strict=True):
        assert not np.array_equal(first, second)
        np.testing.assert_allclose(found.scores[held], (first + second) / 2, rtol=1e-12)


def test_sklearn_estimator(pool, scored):
    found = run("mamushi", pool, **SMALL, estimator="sklearn")
    assert found.details["auc"] == pytest.approx(scored.details["auc"], abs=0.02)
    assert np.array_equal(found.scores, run("mamushi", pool, **SMALL, estimator="sklearn").scores)


def test_sklearn_logits_are_not_rounded_by_the_sigmoid():
    rng = np.random.default_rng(0)
    x = rng.normal(0, 1, (200, 3)).astype(np.float32)
    y = x[:, 0] > 0
    model = MLPClassifier((4,), max_iter=200, random_state=0, learning_rate_init=0.05).fit(x, y)
    found = logits(model, x)
    np.testing.assert_allclose(1 / (1 + np.exp(-found)), model.predict_proba(x)[:, 1], atol=1e-6)
    assert len(np.unique(logits(model, x * 100))) == 200
    assert len(np.unique(model.predict_proba(x * 100)[:, 1])) < 200


@pytest.mark.parametrize(("alpha", "average"), [(0.1, False), (0.1 / 4096, True)])
def test_logistic_regression(pool, alpha, average):
    found = run("mamushi_lr", pool, folds=3, alpha=alpha, average=average)
    forget = pool.forget
    assert len(found.details["per_fold"]) == 3
    held = found.fold == 1
    scaler = StandardScaler().fit(pool.embeddings[~held].astype(np.float32))
    x = scaler.transform(pool.embeddings.astype(np.float32))
    reference = SGDClassifier(
        loss="log_loss", alpha=alpha, average=average, class_weight="balanced", max_iter=200,
        tol=1e-4, random_state=0,
    ).fit(x[~held], forget[~held])  # fmt: skip
    for other in (reference.decision_function(x[held]), pool.truth[held]):
        assert spearmanr(other, found.scores[held]).statistic > 0.99


def test_averaging_removes_the_noise_of_long_steps(pool):
    last, mean = (
        run("mamushi_lr", pool, alpha=0.1 / 4096, average=average) for average in (False, True)
    )
    by_fold = [
        [spearmanr(s.scores[s.fold == i], pool.truth[s.fold == i]).statistic for i in range(5)]
        for s in (last, mean)
    ]
    assert min(by_fold[1]) > max(by_fold[0])


@pytest.mark.parametrize("name", ["mamushi", "mamushi_lr"])
def test_fewer_forget_examples_than_folds(pool, name):
    few = dataclasses.replace(pool, forget=np.arange(3000) < 4)
    with pytest.raises(UserError, match="5 folds need at least 5 forget examples, there are 4"):
        run(name, few)
