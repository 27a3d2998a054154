"""Folds, halves and the held-out part for early stopping: a group is whole in each of them."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from mamushi.errors import UserError
from mamushi.registry import plugin
from mamushi.selection import crossfit
from mamushi.selection.crossfit import Task, cross_fit
from mamushi.selection.folds import held_out, shared, stratified_folds
from mamushi.selection.mlp import Split
from mamushi.selection.pool import Pool
from mamushi.selection.refits import make_refits
from tests.support.worded import worded

Codes = NDArray[np.int64]


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


# Folds and the held-out part ------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 5, 10])
def test_a_group_is_in_one_fold_and_on_one_side_of_early_stopping(k: int) -> None:
    groups = together(600, 9)
    forget = of_groups(groups)
    assert straddling(stratified_folds(forget, k, 0), groups) > 80
    fold = stratified_folds(forget, k, 0, groups)
    assert straddling(fold, groups) == 0
    for domain in (forget, ~forget):
        sizes = np.bincount(fold[domain], minlength=k)
        assert sizes.max() - sizes.min() <= 2
    assert np.array_equal(fold, stratified_folds(forget, k, 0, groups))
    assert not np.array_equal(fold, stratified_folds(forget, k, 1, groups))
    _, held = held_out(forget, 1 / k, np.random.default_rng(0), groups)
    assert straddling(np.isin(np.arange(600), held), groups) == 0
    for domain in (forget, ~forget):
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
        rest, held = held_out(forget, share, np.random.default_rng(seed), groups)
    except UserError:
        assert few < 3
        return
    assert sorted([*rest, *held]) == list(range(len(rows)))
    if shared(groups):
        assert not set(groups[rest]) & set(groups[held])
        assert all(own[part].any() for own in (forget, ~forget) for part in (rest, held))


# All that cross-fits --------------------------------------------------------------------------


def grouped(n: int = 300) -> Pool:
    """Examples by turns of groups of one to five, of one domain each."""
    groups = together(n, 5)
    return dataclasses.replace(worded(n), groups=groups, forget=of_groups(groups, 0.4))


@pytest.mark.parametrize("half", [None, 0, 1])
@pytest.mark.parametrize("sample", [None, 100])
def test_who_is_scored_has_none_of_its_group_in_training(
    half: int | None, sample: int | None
) -> None:
    pool, tasks = grouped(), []

    def spy(task: Task) -> crossfit.Fit:
        tasks.append(task)
        return np.zeros(len(task.held)), {}

    cross_fit(dataclasses.replace(pool, half=half), 4, 5, spy, "spy", sample)
    assert pool.groups is not None and len(tasks) == 4
    for task in tasks:
        assert not set(pool.groups[task.train]) & set(pool.groups[task.held])
        split = Split(task, plugin("selector", "mamushi").defaults)
        fitted, stops = (pool.groups[split.rows[part]] for part in (split.fitted, split.held))
        assert not set(fitted) & set(stops)


def test_halves_share_no_group_and_are_even() -> None:
    pool = grouped()
    assert pool.groups is not None
    fold = stratified_folds(pool.forget, 4, 0, pool.groups)
    half = crossfit._halves(pool, fold, 0)
    assert straddling(half, pool.groups) == 0
    for domain in (pool.forget, ~pool.forget):
        assert abs(half[domain].mean() - 0.5) < 0.05
    # Of seven groups there are none, however many texts they are.
    few = dataclasses.replace(pool, groups=np.arange(300) % 7 + 7 * pool.forget)
    given_to = {**plugin("selector", "mamushi_lr").defaults, "folds": 2, "epochs": 2}
    assert len(make_refits(few, "mamushi_lr", given_to, 0, whole=1, halves=1)) == 1
    assert len(make_refits(pool, "mamushi_lr", given_to, 0, whole=1, halves=1)) == 3


# Codes ----------------------------------------------------------------------------------------
