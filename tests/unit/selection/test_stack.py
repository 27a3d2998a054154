"""The combination of estimators and the choice among them: no leak, the right choice, its gain."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from mamushi.errors import UserError
from mamushi.registry import plugin
from mamushi.selection import crossfit
from mamushi.selection.crossfit import REPEAT, Task
from mamushi.selection.folds import balanced_weights, stratified_folds
from mamushi.selection.metrics import auc, auc_difference
from mamushi.selection.pool import Pool, Scored
from mamushi.selection.stack import Member, estimate_stack
from tests.support.worded import check_flip, run, worded

SMALL: dict[str, dict[str, Any]] = {
    "mamushi_stack": {"depths": [0.5, 1], "repeats": 1},
    "auto": {
        "depths": [0.5, 1],
        "networks": {**plugin("selector", "mamushi").defaults, "seeds_averaged": 1},
        "inner_networks": 1,
        "repeats": 1,
    },
}


def fits(found: Scored) -> list[dict[str, Any]]:
    return [fit for fold in found.details["per_fold"] for fit in fold["fits"]]


@pytest.mark.parametrize("name", SMALL)
def test_a_label_has_no_part_in_its_own_score(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check_flip(name, worded(120), monkeypatch, **SMALL[name], folds=3)


def test_repeats_are_cross_fittings_whose_logits_are_averaged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = "mamushi_stack"
    pool, settings = worded(120), {**SMALL[name], "folds": 3}
    twice = run(name, pool, **{**settings, "repeats": 2})
    alone = [run(name, pool, seed, **settings) for seed in (0, crossfit.derive_seed(0, REPEAT, 1))]
    assert twice.scores == pytest.approx((alone[0].scores + alone[1].scores) / 2, abs=1e-6)
    assert len(fits(twice)) == 6
    assert np.array_equal(twice.fold, alone[0].fold)
    # The folds are held: which of them a text is in is drawn from its domain.
    drawn = crossfit.stratified_folds
    monkeypatch.setattr(
        crossfit,
        "stratified_folds",
        lambda forget, k, seed: drawn(pool.forget if len(forget) == 120 else forget, k, seed),
    )
    forget = pool.forget.copy()
    forget[7] = ~forget[7]
    after = run(name, replace(pool, forget=forget), **{**settings, "repeats": 2})
    assert after.scores[7] == twice.scores[7]
    assert not np.array_equal(after.scores, twice.scores)


def test_shuffled_labels_cannot_be_told_apart() -> None:
    """The mean AUC of 8 pools of 150 examples, whose standard error is about 0.025."""
    areas = []
    for seed in range(8):
        pool = worded(150, words=0, middle=0, last=0, seed=seed)
        found = run("mamushi_stack", pool, seed, **SMALL["mamushi_stack"], folds=3)
        areas.append(found.details["auc"])
    assert np.mean(areas) == pytest.approx(0.5, abs=0.06)


def test_the_stack_is_better_than_each_of_its_parts() -> None:
    pool = worded(600, words=0.4, middle=1.5, last=1.5)
    stack = run("mamushi_stack", pool, **SMALL["mamushi_stack"])
    alone = [
        *(run("linear", pool, depths=[depth]).details["auc"] for depth in (0.5, 1)),
        run("lexical", pool).details["auc"],
    ]
    assert stack.details["auc"] > max(alone) + 0.02
    assert set(stack.details["weights"]) == {"linear_1", "linear_0.5", "lexical"}
    assert min(stack.details["weights"].values()) > 0.3
    # A log-density ratio in nats: the domain depends on it with a slope of 1, within its error.
    slope = LogisticRegression(C=np.inf, class_weight="balanced")
    slope.fit(stack.scores[:, None], pool.forget)
    assert slope.coef_[0, 0] == pytest.approx(1, abs=0.25)


@pytest.mark.parametrize(
    ("parts", "chosen"),
    [
        ({"words": 0, "middle": 3, "last": 0}, "linear_0.5"),
        ({"words": 3, "middle": 0, "last": 0}, "lexical"),
        ({"words": 0.4, "middle": 1.5, "last": 1.5}, "stack"),
    ],
)
def test_auto_chooses_what_tells_the_domains_apart(parts: dict[str, float], chosen: str) -> None:
    found = run("auto", worded(450, **parts), **SMALL["auto"], folds=3)
    assert [fit["chosen"] for fit in fits(found)] == [chosen] * 3
    assert found.details["chosen"] == f"{chosen} (3 of 3 folds)"
    gain = found.details["gain"]
    assert 0 < gain["low"] < gain["auc"] < gain["high"]
    for fit in fits(found):
        assert min(fit["losses"], key=fit["losses"].__getitem__) in (chosen, "stack")


def test_a_stack_without_a_member_is_a_users_mistake() -> None:
    with pytest.raises(UserError, match="no member"):
        run("mamushi_stack", worded(120), depths=[], lexical=False)


# By hand ------------------------------------------------------------------------------------------


def by_column(column: int) -> Member:
    """A member that scores by a column of the embeddings, whatever it was fitted on."""

    def estimate(tasks: Any, final: bool) -> list[Any]:
        return [task.embeddings[task.held, column].astype(np.float64) for task in tasks]

    return Member(f"column_{column}", estimate)


def given() -> Task:
    pool: Pool = worded(300, last=1.0)
    fold = stratified_folds(pool.forget, 3, 0)
    rows = [np.flatnonzero(fold != 0), np.flatnonzero(fold == 0)]
    return Task(pool.embeddings, pool.forget, *rows, np.zeros(6), np.ones(6), seed=5)


def test_weights_and_losses_are_those_of_a_logistic_regression() -> None:
    task, members = given(), [by_column(0), by_column(1)]
    (logits, details), beside = estimate_stack(task, members, 4, {"stack": [0, 1]}, [0])
    x = task.embeddings.astype(np.float64)[:, :2]
    y = task.forget[task.train]
    mean, scale = x[task.train].mean(axis=0), x[task.train].std(axis=0)
    z = (x - mean) / scale
    model = LogisticRegression(C=1.0, class_weight="balanced", solver="newton-cholesky", tol=1e-10)
    model.fit(z[task.train], y)
    assert logits == pytest.approx(model.decision_function(z[task.held]), abs=1e-3)
    assert list(details["weights"].values()) == pytest.approx(model.coef_[0], abs=1e-3)
    model.fit(z[task.train][:, :1], y)
    assert beside == pytest.approx(model.decision_function(z[task.held][:, :1]), abs=1e-3)


def test_the_choice_is_by_the_loss_of_texts_that_no_weight_was_fitted_on() -> None:
    task, members = given(), [by_column(1), by_column(0)]
    among = {"column_1": [0], "column_0": [1], "stack": [0, 1]}
    (_, details), _ = estimate_stack(task, members, 4, among)
    assert details["chosen"] == "column_0"  # the other one knows nothing
    losses = details["losses"]
    assert losses["column_1"] == pytest.approx(np.log(2), abs=0.02)
    # In the mean over inner folds nearly what a fit on all of them has, and above it.
    y = task.forget[task.train]
    x = task.embeddings[task.train, :1].astype(np.float64)
    fit = LogisticRegression(C=np.inf, class_weight="balanced").fit(x, y)
    signed = np.where(y, 1, -1) * fit.decision_function(x)
    least = float((balanced_weights(y) * np.logaddexp(0, -signed)).mean())
    assert least < losses["column_0"] < least + 0.03


def test_the_gain_is_a_paired_difference() -> None:
    pool = worded(300, last=1.0)
    first, second = (pool.embeddings[:, i].astype(np.float64) for i in (0, 1))
    value, low, high = auc_difference(first, second, pool.forget)
    wanted = roc_auc_score(pool.forget, first) - roc_auc_score(pool.forget, second)
    assert value == pytest.approx(wanted)
    # The spread over resamples of the texts, of which DeLong's is the formula; twice its variance.
    rng, spread = np.random.default_rng(0), []
    for _ in range(1000):
        some = rng.integers(0, 300, 300)
        y = pool.forget[some]
        spread.append(auc(first[some], y) - auc(second[some], y))
    assert (high - low) / 2 == pytest.approx(1.96 * np.sqrt(2) * np.std(spread), rel=0.1)
    assert auc_difference(first, first, pool.forget) == (0.0, 0.0, 0.0)
