"""Folds, halves, samples and the held-out part: whom an estimator sees, and whom it scores."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from mamushi.errors import UserError
from mamushi.registry import plugin
from mamushi.selection import crossfit
from mamushi.selection.crossfit import Task, cross_fit
from mamushi.selection.folds import draw_held_out, has_groups, stratified_folds
from mamushi.selection.mlp import Split
from mamushi.selection.pool import Pool
from tests.support.worded import worded

Codes = NDArray[np.int64]


def tasks_of(pool: Pool, k: int, seed: int = 0, fit_sample: int | None = None) -> list[Task]:
    """The tasks of a cross-fitting."""
    tasks: list[Task] = []

    def estimate(task: Task) -> crossfit.Fit:
        tasks.append(task)
        return task.embeddings[task.held_out, 0].astype(np.float64), {}

    cross_fit(pool, {"folds": k, "fit_sample": fit_sample}, seed, estimate, "tasks")
    return tasks


def together(n: int, largest: int, seed: int = 0) -> Codes:
    """Codes of groups of one to ``largest``, in any order."""
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(n), rng.integers(1, largest + 1, n))[:n]
    return np.asarray(rng.permutation(codes), dtype=np.int64)


def straddling(part: Any, groups: Codes) -> int:
    """How many groups are in two parts."""
    pairs = np.unique(np.stack([groups, part]), axis=1)
    return int((np.unique(pairs[0], return_counts=True)[1] > 1).sum())


def of_groups(groups: Codes, share: float = 0.3) -> NDArray[np.bool_]:
    """Domains (n,), one of a group."""
    return np.asarray(np.random.default_rng(1).random(int(groups.max()) + 1) < share)[groups]


@pytest.mark.parametrize("k", [2, 5, 10])
def test_a_group_is_in_one_fold_and_on_one_side_of_early_stopping(k: int) -> None:
    groups = together(600, 9)
    forget = of_groups(groups)
    alone, fold = stratified_folds(forget, k, 0), stratified_folds(forget, k, 0, groups)
    assert straddling(alone, groups) > 80 and straddling(fold, groups) == 0
    assert not np.array_equal(fold, stratified_folds(forget, k, 1, groups))
    _, held = draw_held_out(forget, 1 / k, np.random.default_rng(0), groups)
    for domain in (forget, ~forget):
        assert np.ptp(np.bincount(alone[domain], minlength=k)) <= 1
        assert np.ptp(np.bincount(fold[domain], minlength=k)) <= 2
        assert abs(domain[held].sum() - domain.sum() / k) <= 1


ROWS = st.lists(st.tuples(st.booleans(), st.integers(0, 40)), min_size=8, max_size=120).filter(
    lambda rows: len({forget for forget, _ in rows}) == 2
)


@given(ROWS, st.integers(2, 6), st.floats(0.01, 0.99), st.integers(0, 3))
def test_no_group_straddles(rows: list[tuple[bool, int]], k: int, share: float, seed: int) -> None:
    """Groups may hold texts of both domains."""
    forget, groups = np.array([f for f, _ in rows]), np.array([g for _, g in rows], np.int64)
    few = min(len(np.unique(groups[domain])) for domain in (forget, ~forget))
    try:
        fold = stratified_folds(forget, k, seed, groups)
    except UserError:
        assert few < 2 * k * np.unique(groups, return_counts=True)[1].max()
    else:
        assert straddling(fold, groups) == 0
        for domain in (forget, ~forget):
            assert np.bincount(fold[domain], minlength=k).min() > 0
            assert all(len(np.unique(groups[domain & (fold != i)])) >= 2 for i in range(k))
    try:
        fitted, held = draw_held_out(forget, share, np.random.default_rng(seed), groups)
    except UserError:
        assert few < 3
        return
    assert sorted([*fitted, *held]) == list(range(len(rows)))
    if has_groups(groups):
        assert not set(groups[fitted]) & set(groups[held])
        assert all(domain[rows].any() for domain in (forget, ~forget) for rows in (fitted, held))


def grouped(n: int = 300) -> Pool:
    """Examples by turns of groups of one to five, of one domain each."""
    groups = together(n, 5)
    return replace(worded(n), groups=groups, forget=of_groups(groups, 0.4))


@pytest.mark.parametrize("half", [None, 0, 1])
@pytest.mark.parametrize("sample", [None, 100])
def test_who_is_scored_has_none_of_its_group_in_training(
    half: int | None, sample: int | None
) -> None:
    pool = grouped()
    tasks = tasks_of(replace(pool, half=half), 4, 5, sample)
    assert pool.groups is not None and len(tasks) == 4
    for task in tasks:
        assert not set(pool.groups[task.train]) & set(pool.groups[task.held_out])
        split = Split(task, plugin("selector", "mamushi").defaults, torch.device("cpu"))
        fitted, stops = (pool.groups[task.train[part]] for part in (split.fitted, split.held_out))
        assert not set(fitted) & set(stops)


def test_halves_of_a_folds_training_examples_share_none_and_are_stratified() -> None:
    pool = worded(241)
    runs = [tasks_of(replace(pool, half=half), 3, 5) for half in (None, 0, 1)]
    for every, a, b in zip(*runs, strict=True):
        assert not set(a.train) & set(b.train)
        assert sorted([*a.train, *b.train]) == every.train.tolist()
        for half in (a, b):
            assert np.array_equal(half.held_out, every.held_out)
            for domain in (pool.forget, ~pool.forget):
                both = domain[every.train].sum()
                assert abs(domain[half.train].sum() - both / 2) <= 1
            x = pool.embeddings[half.train].astype(np.float64)
            np.testing.assert_allclose(half.mean, x.mean(axis=0), rtol=1e-12)
            np.testing.assert_allclose(half.scale, x.std(axis=0), rtol=1e-12)
        assert len({every.seed, a.seed, b.seed}) == 3


@pytest.mark.parametrize(("most", "all_forget"), [(100, False), (300, True)])
def test_a_sample_has_a_rare_domain_whole_or_both_in_proportion(
    most: int, all_forget: bool
) -> None:
    pool = worded(600)
    complete, sampled = tasks_of(pool, 3), tasks_of(pool, 3, fit_sample=most)
    for every, some in zip(complete, sampled, strict=True):
        assert set(some.train) < set(every.train)
        assert len(some.train) == pytest.approx(most, abs=1)
        there = pool.forget[every.train].sum()
        asked = there if all_forget else most / len(every.train) * there
        assert pool.forget[some.train].sum() == pytest.approx(asked, abs=1)
        # All are scored, and standardised by all.
        assert np.array_equal(some.held_out, every.held_out)
        assert np.array_equal(some.mean, every.mean)
    assert not np.array_equal(tasks_of(pool, 3, 1, most)[0].train, sampled[0].train)
