"""The combination of estimators and the choice among them: no leak, the right choice, its gain."""

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from mamushi.registry import plugin
from mamushi.selection import crossfit
from mamushi.selection.crossfit import REPEAT, Task
from mamushi.selection.folds import balanced_weights, stratified_folds
from mamushi.selection.metrics import auc, auc_difference
from mamushi.selection.nested import Member
from mamushi.selection.pool import Pool, Scored
from mamushi.selection.selectors._auto import estimate_choice
from tests.support.worded import check_flip, run, worded

SMALL: dict[str, Any] = {
    "depths": [0.5, 1],
    "networks": {**plugin("selector", "mamushi").defaults, "seeds_averaged": 1, "hidden": [16]},
    "inner_networks": 1,
    "repeats": 1,
    "folds": 3,
}


def fits(found: Scored) -> list[dict[str, Any]]:
    return [fit for fold in found.details["per_fold"] for fit in fold["fits"]]


def test_a_label_has_no_part_in_its_own_score(monkeypatch: pytest.MonkeyPatch) -> None:
    check_flip("auto", worded(120), monkeypatch, **SMALL)


@pytest.mark.slow
def test_repeats_are_cross_fittings_whose_logits_are_averaged() -> None:
    pool = worded(120)
    settings = {**SMALL, "networks": {**SMALL["networks"], "seeds_averaged": 2}}
    single = {**settings, "networks": SMALL["networks"]}
    twice = run("auto", pool, **{**settings, "repeats": 2})
    alone = [run("auto", pool, seed, **single) for seed in (0, crossfit.derive_seed(0, REPEAT, 1))]
    assert twice.scores == pytest.approx((alone[0].scores + alone[1].scores) / 2, abs=1e-6)
    assert len(fits(twice)) == 6
    assert np.array_equal(twice.fold, alone[0].fold)


@pytest.mark.slow
def test_shuffled_labels_cannot_be_told_apart() -> None:
    """The mean AUC of 8 pools of 150 examples, whose standard error is about 0.025."""
    areas = []
    for seed in range(8):
        pool = worded(150, words=0, middle=0, last=0, seed=seed)
        found = run("auto", pool, seed, **SMALL)
        areas.append(found.details["auc"])
    assert np.mean(areas) == pytest.approx(0.5, abs=0.06)


def test_the_stack_is_better_than_each_of_its_parts() -> None:
    pool = worded(600, words=0.4, middle=1.5, last=1.5)
    stack = run("auto", pool, **SMALL)
    assert stack.details["chosen"] == "stack (3 of 3 folds)"
    alone = [
        *(run("linear", pool, depths=[depth]).details["auc"] for depth in (0.5, 1)),
        run("lexical", pool).details["auc"],
    ]
    assert stack.details["auc"] > max(alone) + 0.02
    assert set(stack.details["weights"]) == {"mamushi", "linear_1", "linear_0.5", "lexical"}
    assert min(stack.details["weights"][name] for name in ("linear_0.5", "lexical")) > 0.3
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
    found = run("auto", worded(450, **parts), **SMALL)
    assert [fit["chosen"] for fit in fits(found)] == [chosen] * 3
    assert found.details["chosen"] == f"{chosen} (3 of 3 folds)"
    gain = found.details["gain"]
    assert 0 < gain["low"] < gain["auc"] < gain["high"]
    for fit in fits(found):
        assert min(fit["losses"], key=fit["losses"].__getitem__) in (chosen, "stack")


def by_column(column: int) -> Member:
    """A member that scores by a column of the embeddings, whatever it was fitted on."""

    def estimate(tasks: Any, final: bool) -> list[Any]:
        return [task.embeddings[task.held, column].astype(np.float64) for task in tasks]

    return Member(f"column_{column}", estimate)


def given(*columns: float) -> Task:
    """A fold of examples whose domains are so far apart in the first columns."""
    pool: Pool = worded(300)
    x = np.random.default_rng(0).normal(size=(300, 6))
    x[pool.forget, : len(columns)] += columns
    fold = stratified_folds(pool.forget, 3, 0)
    rows = [np.flatnonzero(fold != 0), np.flatnonzero(fold == 0)]
    return Task(x.astype(np.float16), pool.forget, *rows, np.zeros(6), np.ones(6), seed=5)


def test_weights_are_those_of_a_logistic_regression() -> None:
    task, members = given(1.0, 1.0), [by_column(0), by_column(1)]
    (logits, details), beside = estimate_choice(task, members, 4)
    assert details["chosen"] == "stack"
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
    task, members = given(1.0), [by_column(1), by_column(0)]
    (_, details), _ = estimate_choice(task, members, 4)
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
