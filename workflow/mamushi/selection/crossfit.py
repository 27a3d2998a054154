"""Stratified k-fold cross-fitting (paper, Appendix "Training Regime"): every example is scored by
an estimator that never saw it, and every statistic comes from the training folds alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mamushi.running.progress import Progress
from mamushi.running.threads import side_by_side
from mamushi.selection.folds import held_out, stratified_folds
from mamushi.selection.metrics import auc
from mamushi.selection.pool import Pool, Scored
from mamushi.selection.statistics import standard_scale, sums

Doubles = NDArray[np.float64]

REPEAT, HALF, SAMPLE = 2**32 - 1, 2**32 - 2, 2**32 - 6
"""No number of a fold: what sets the seeds of other draws apart from those of the folds."""
PART = 65536
"""Rows that an estimator scores at a time."""

FOLDS: dict[str, Any] = {
    "type": "integer",
    "minimum": 2,
    "default": 5,
    "description": "Folds of the stratified cross-fitting, and of one within, where there is one.",
}
"""The setting ``folds`` of selectors that cross-fit."""
FIT_SAMPLE: dict[str, Any] = {
    "type": ["integer", "null"],
    "minimum": 1000,
    "default": 200000,
    "description": "Most examples that an estimator is fitted on, drawn in each fold with both "
    "domains in proportion; all are scored. null: all of the other folds.",
}
"""The setting ``fit_sample`` of selectors that cross-fit."""


@dataclass(frozen=True)
class Task:
    """One fold: fit on the rows ``train``, score the rows ``held``.

    ``mean`` and ``scale`` (d,) standardise a column by what ``train`` says about it.
    """

    embeddings: NDArray[np.float16]
    forget: NDArray[np.bool_]
    train: NDArray[np.int64]
    held: NDArray[np.int64]
    mean: Doubles
    scale: Doubles
    seed: int

    def features(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Standardised embeddings (len(rows), d) in float32."""
        x = self.embeddings[rows].astype(np.float32)
        x -= self.mean.astype(np.float32)
        x /= self.scale.astype(np.float32)
        return x

    def scored(self, score: Callable[[NDArray[np.int64]], NDArray[Any]]) -> Doubles:
        """What ``score`` gives for the rows ``held``, of which it is asked in bounded parts."""
        parts = np.split(self.held, range(PART, len(self.held), PART))
        return np.concatenate([np.asarray(score(part), dtype=np.float64) for part in parts])


Fit = tuple[Doubles, dict[str, Any]]
"""The logits of the rows ``held``, and details of the fit."""

Estimator = Callable[[Task], Fit]


def cross_fit(
    pool: Pool, k: int, seed: int, estimate: Estimator, what: str, fit_sample: int | None = None
) -> Scored:
    """``cross_fit_together`` with an estimator that takes one fold; the folds are side by side."""
    together = partial(side_by_side, estimate)
    found = cross_fit_together(pool, k, seed, together, what, fit_sample=fit_sample)
    for fit in found.details["per_fold"]:
        fit |= fit.pop("fits")[0]
    return found


def cross_fit_together(
    pool: Pool,
    k: int,
    seed: int,
    estimate: Callable[[Sequence[Task]], Iterable[Fit]],
    what: str,
    repeats: int = 1,
    average: Callable[[Sequence[Task], Sequence[Doubles], int], Doubles] | None = None,
    *,
    fit_sample: int | None = None,
) -> Scored:
    """Raw out-of-fold logits of all examples: the estimate of log p1(x)/p2(x).

    ``estimate`` is given the tasks of all folds and gives the fit of each, in their order. More
    ``repeats`` than one are cross-fittings with folds of their own, over which logits are averaged:
    by ``average``, else ``averaged``. What is told of folds is told of the first repeat's.

    Of more training examples than ``fit_sample`` each task has so many, drawn by its own seed with
    the domains in proportion; it standardises by the statistics of all of them, and scores all of
    its fold.

    ``details`` has the pooled and the per-fold AUC, and per fold the offset of its logits from the
    pooled ones (mean of the two class means, so that class sizes do not enter): the logits of a
    single repeat are pooled as they are, and offsets that differ reorder ranks. ``fits`` is what
    the estimator told of the fold of that number in each repeat.
    """
    seeds = [seed, *(derive_seed(seed, REPEAT, i) for i in range(1, repeats))]
    folds = [stratified_folds(pool.forget, k, each) for each in seeds]
    # One split for all repeats: an average over splits of their own would learn from all examples.
    half = None if pool.half is None else _halves(pool.forget, folds[0], seed) == pool.half
    tasks = [
        task
        for fold, each in zip(folds, seeds, strict=True)
        for task in _tasks(pool, fold, k, each, half, fit_sample)
    ]
    found = []
    fits: list[list[dict[str, Any]]] = [[] for _ in range(k)]
    with Progress(len(tasks), what, "fold") as progress:
        for i, (task, (own, details)) in enumerate(zip(tasks, estimate(tasks), strict=True)):
            found.append(own)
            fits[i % k].append(details)
            progress.advance(note=f"AUC {auc(own, pool.forget[task.held]):.3f}")
    logits = (average or averaged)(tasks, found, repeats)
    centre = middle(logits, pool.forget)
    per_fold = []
    for i, told in enumerate(fits):
        held = folds[0] == i
        own, forget = logits[held], pool.forget[held]
        about = {"auc": auc(own, forget), "offset": middle(own, forget) - centre}
        per_fold.append({**about, "fits": told})
    return Scored(
        logits,
        folds[0],
        details={"auc": auc(logits, pool.forget), "folds": k, "per_fold": per_fold},
    )


def plain_mean(tasks: Sequence[Task], found: Sequence[Doubles], repeats: int) -> Doubles:
    """Logits (n,) of all examples: the mean over repeats of what each task ``found`` for its
    held-out ones, for estimates that are calibrated and so comparable as they are."""
    logits = np.zeros(len(tasks[0].forget))
    for task, own in zip(tasks, found, strict=True):
        logits[task.held] += own / repeats
    return logits


def averaged(tasks: Sequence[Task], found: Sequence[Doubles], repeats: int) -> Doubles:
    """Logits (n,) of all examples from those that each task ``found`` for its held-out ones.

    Those of one repeat are taken as they are. Those of several are first brought to the networks'
    mean offset and scale, of which each has its own: how far its logits spread depends on when its
    training stopped more than on the texts. On texts that no network here saw, that leaves the
    order within a fold as it is; across folds and repeats it makes logits comparable. Offset is the
    middle of the class means, scale the standard deviation within the classes.
    """
    if repeats == 1:
        return plain_mean(tasks, found, 1)
    logits = np.zeros(len(tasks[0].forget))
    by_class = [
        (own[of], own[~of])
        for task, own in zip(tasks, found, strict=True)
        for of in [task.forget[task.held]]
    ]
    offsets = np.array([(one.mean() + two.mean()) / 2 for one, two in by_class])
    scales = np.array([np.sqrt((one.var() + two.var()) / 2) for one, two in by_class])
    for task, own, offset, scale in zip(tasks, found, offsets, scales, strict=True):
        # Constant logits, as of constant embeddings, have no scale.
        logits[task.held] += (own - offset) / (scale or 1.0)
    return np.asarray(offsets.mean() + scales.mean() * logits / repeats)


def _tasks(
    pool: Pool,
    fold: NDArray[np.int16],
    k: int,
    seed: int,
    half: NDArray[np.bool_] | None,
    most: int | None,
) -> Iterator[Task]:
    """The task of each fold. On the ``half`` (n,) of the examples it has seeds of its own, so that
    the estimates of the two halves are independent."""
    used = np.ones(len(fold), dtype=np.bool_) if half is None else half
    # Zeros at the end change no seed.
    draw = [] if pool.half is None else [pool.half + 1]
    totals = sums(pool, np.where(used, fold, k), k + 1)
    for i in range(k):
        n, mean, variance = totals.moments([j for j in range(k) if j != i])
        train = np.flatnonzero(used & (fold != i))
        if most is not None and len(train) > most:
            rng = np.random.default_rng(derive_seed(seed, SAMPLE, i, *draw))
            train = train[held_out(pool.forget[train], most / len(train), rng)[1]]
        yield Task(
            pool.embeddings,
            pool.forget,
            train,
            np.flatnonzero(fold == i),
            mean,
            standard_scale(n, mean, variance),
            derive_seed(seed, i, *draw),
        )


def _halves(forget: NDArray[np.bool_], fold: NDArray[np.int16], seed: int) -> NDArray[np.int64]:
    """Half (n,) of every example, 0 or 1: of each domain in each fold, half of the examples."""
    rng = np.random.default_rng(derive_seed(seed, HALF))
    half = np.empty(len(forget), dtype=np.int64)
    for i in range(int(fold.max()) + 1):
        for domain in (forget, ~forget):
            members = rng.permutation(np.flatnonzero(domain & (fold == i)))
            # Odd ones go to either half in turn, or one half would be the smaller in all folds.
            half[members] = (np.arange(len(members)) + i) % 2
    return half


def middle(logits: Doubles, forget: NDArray[np.bool_]) -> float:
    """Midpoint between the mean logit of the forget and that of the retain examples."""
    return float((logits[forget].mean() + logits[~forget].mean()) / 2)


def derive_seed(*parts: int) -> int:
    """A seed below 2**32 for one part of a job, independent of the seeds of the other parts."""
    return int(np.random.SeedSequence(parts).generate_state(1)[0])
