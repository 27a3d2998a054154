"""Stratified k-fold cross-fitting (paper, Appendix "Training Regime"): every example is scored by
an estimator that never saw it, and every statistic comes from the training folds alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mamushi.running.progress import Progress
from mamushi.selection.folds import stratified_folds
from mamushi.selection.metrics import auc
from mamushi.selection.pool import Pool, Scored
from mamushi.selection.statistics import standard_scale, sums

Doubles = NDArray[np.float64]


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


Fit = tuple[Doubles, dict[str, Any]]
"""The logits of the rows ``held``, and details of the fit."""

Estimator = Callable[[Task], Fit]


def cross_fit(pool: Pool, k: int, seed: int, estimate: Estimator, what: str) -> Scored:
    """``cross_fit_together`` with an estimator that takes one fold at a time."""
    return cross_fit_together(pool, k, seed, lambda tasks: map(estimate, tasks), what)


def cross_fit_together(
    pool: Pool,
    k: int,
    seed: int,
    estimate: Callable[[Sequence[Task]], Iterable[Fit]],
    what: str,
) -> Scored:
    """Raw out-of-fold logits of all examples: the estimate of log p1(x)/p2(x).

    ``estimate`` is given the tasks of all folds and gives the fit of each, in their order.

    ``details`` has the pooled and the per-fold AUC, and per fold the offset of its logits from the
    pooled ones (mean of the two class means, so that class sizes do not enter): the logits of the
    folds are pooled as they are, and offsets that differ reorder ranks.
    """
    fold = stratified_folds(pool.forget, k, seed)
    totals = sums(pool, fold, k)
    tasks = []
    for i in range(k):
        n, mean, variance = totals.moments([j for j in range(k) if j != i])
        tasks.append(
            Task(
                pool.embeddings,
                pool.forget,
                np.flatnonzero(fold != i),
                np.flatnonzero(fold == i),
                mean,
                standard_scale(n, mean, variance),
                derive_seed(seed, i),
            )
        )
    logits = np.empty(len(pool.ids))
    fits = []
    with Progress(k, what, "fold") as progress:
        for task, (found, details) in zip(tasks, estimate(tasks), strict=True):
            logits[task.held], forget = found, pool.forget[task.held]
            area = auc(found, forget)
            fits.append({"auc": area, "middle": middle(found, forget), **details})
            progress.advance(note=f"AUC {area:.3f}")
    centre = middle(logits, pool.forget)
    for fit in fits:
        fit["offset"] = fit.pop("middle") - centre
    return Scored(
        logits, fold, details={"auc": auc(logits, pool.forget), "folds": k, "per_fold": fits}
    )


def middle(logits: Doubles, forget: NDArray[np.bool_]) -> float:
    """Midpoint between the mean logit of the forget and that of the retain examples."""
    return float((logits[forget].mean() + logits[~forget].mean()) / 2)


def derive_seed(*parts: int) -> int:
    """A seed below 2**32 for one part of a job, independent of the seeds of the other parts."""
    return int(np.random.SeedSequence(parts).generate_state(1)[0])
