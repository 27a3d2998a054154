"""Stratified k-fold cross-fitting (paper, Appendix "Training Regime"): every example is scored by
an estimator that never saw it, and every statistic comes from the training folds alone."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mamushi.running.machine import side_by_side
from mamushi.running.progress import Progress
from mamushi.selection.arrays import Doubles, Mask, Rows
from mamushi.selection.folds import draw_by_group, draw_held_out, has_groups, stratified_folds
from mamushi.selection.metrics import auc
from mamushi.selection.pool import Pool, Scored
from mamushi.selection.statistics import sum_groups

# Set the seeds of other draws apart from those of the folds, whose numbers are small.
REPEAT, HALF, SAMPLE = 2**32 - 1, 2**32 - 2, 2**32 - 6
_BLOCK = 65536  # Rows that an estimator scores at a time.


@dataclass(frozen=True)
class Task:
    """One fold: fit on the rows ``train``, score the rows ``held_out``; ``mean`` and ``scale`` (d,)
    are those of ``train``. ``groups`` (n,) are codes of dependent examples, if there are any."""

    embeddings: NDArray[np.float16]
    forget: Mask
    train: Rows
    held_out: Rows
    mean: Doubles
    scale: Doubles
    seed: int
    groups: Rows | None = None

    @property
    def groups_of_train(self) -> Rows | None:
        """Codes of the groups of the rows ``train``."""
        return None if self.groups is None else self.groups[self.train]

    def features(self, rows: Rows) -> NDArray[np.float32]:
        """Return standardised embeddings (len(rows), d) in float32."""
        x = self.embeddings[rows].astype(np.float32)
        x -= self.mean.astype(np.float32)
        x /= self.scale.astype(np.float32)
        return x

    def score_held_out(self, score: Callable[[Rows], NDArray[Any]]) -> Doubles:
        """Score the rows ``held_out`` by ``score``, in blocks of bounded size."""
        blocks = np.split(self.held_out, range(_BLOCK, len(self.held_out), _BLOCK))
        return np.concatenate([np.asarray(score(rows), dtype=np.float64) for rows in blocks])


Fit = tuple[Doubles, dict[str, Any]]  # The logits of the rows ``held_out``, and details.


def cross_fit(
    pool: Pool,
    settings: Mapping[str, Any],
    seed: int,
    estimate: Callable[..., Any],
    name: str,
    *,
    together: bool = False,
) -> Scored:
    """Estimate log p1(x)/p2(x): raw out-of-fold logits of all examples.

    ``estimate`` gives the fit of a task; or ``together`` the fits of the tasks of all ``folds``, in
    their order. With ``seeds_averaged`` above 1 there are as many cross-fittings with folds of
    their own, over which the average goes. Folds and statistics of folds are the first one's.
    Of more training examples than ``fit_sample`` a task has so many, drawn by its seed, and the
    statistics of all.

    ``details`` has the pooled and the per-fold AUC, per fold the offset of its logits from the
    pooled ones (offsets that differ reorder ranks), and what the estimator says of the first
    repeat.
    """
    k, repeats = settings["folds"], settings.get("seeds_averaged", 1)
    seeds = [seed, *(derive_seed(seed, REPEAT, i) for i in range(1, repeats))]
    folds = [stratified_folds(pool.forget, k, fold_seed, pool.groups) for fold_seed in seeds]
    # One split for all repeats: an average over splits of their own would learn from all examples.
    used = np.ones(len(pool.ids), dtype=np.bool_)
    if pool.half is not None:
        used = _draw_halves(pool, folds[0], seed) == pool.half
    tasks, fits = list[Task](), list[Fit]()
    for fold, fold_seed in zip(folds, seeds, strict=True):
        tasks += _tasks(pool, fold, fold_seed, used, settings.get("fit_sample"))
    with Progress(len(tasks), name, "fold") as progress:
        for fit in estimate(tasks) if together else side_by_side(estimate, tasks):
            fits.append(fit)
            progress.advance()
    logits = average_repeats(tasks, [of_task for of_task, _ in fits], repeats)
    centre, per_fold = logit_midpoint(logits, pool.forget), []
    for i, (_, remark) in enumerate(fits[:k]):
        in_fold, forget = logits[folds[0] == i], pool.forget[folds[0] == i]
        offset = logit_midpoint(in_fold, forget) - centre
        per_fold.append({"auc": auc(in_fold, forget), "offset": offset, **remark})
    details = {"auc": auc(logits, pool.forget), "folds": k, "per_fold": per_fold}
    return Scored(logits, folds[0], details=details)


def average_repeats(tasks: Sequence[Task], by_task: Sequence[Doubles], repeats: int) -> Doubles:
    """Return one logit for every example (n,): the mean over repeats of the logits ``by_task``,
    each of which has those of its task's held-out examples.

    With several repeats, the logits of each network are first shifted and scaled to the mean offset
    and scale of all networks, for how far they spread depends on when a training stopped."""
    logits = np.zeros(len(tasks[0].forget))
    offsets, scales = (np.array([f(values) for values in by_task]) for f in (np.mean, np.std))
    for task, values, offset, scale in zip(tasks, by_task, offsets, scales, strict=True):
        # Constant logits, as of constant embeddings, have no scale.
        logits[task.held_out] += values if repeats == 1 else (values - offset) / (scale or 1.0)
    return logits if repeats == 1 else np.asarray(offsets.mean() + scales.mean() * logits / repeats)


def _tasks(
    pool: Pool, fold: NDArray[np.int16], seed: int, used: Mask, most: int | None
) -> Iterator[Task]:
    """Yield the task of each fold, which fits on those of the examples that are ``used`` (n,), or a
    sample of ``most`` of them; on a half with seeds of its own."""
    k = int(fold.max()) + 1
    # Zeros at the end change no seed.
    draw = [] if pool.half is None else [pool.half + 1]
    totals = sum_groups(pool, np.where(used, fold, k), k + 1)
    for i in range(k):
        train = np.flatnonzero(used & (fold != i))
        if most is not None and len(train) > most:
            rng = np.random.default_rng(derive_seed(seed, SAMPLE, i, *draw))
            train = train[draw_sample(pool.forget[train], most, rng)]
        standard = totals.mean_and_scale([j for j in range(k) if j != i])
        rows = (train, np.flatnonzero(fold == i))
        fold_seed = derive_seed(seed, i, *draw)
        task = Task(pool.embeddings, pool.forget, *rows, *standard, fold_seed, pool.groups)
        for step in pool.fold_steps:
            task = step(task, pool)
        yield task


def draw_sample(forget: Mask, most: int, rng: np.random.Generator) -> Rows:
    """Draw ``most`` of the examples. Classes are balanced by their weights, so that none of a rare
    domain has to go, as the examples of one beside a large corpus."""
    rare = np.flatnonzero(forget if 2 * forget.sum() < len(forget) else ~forget)
    if 2 * len(rare) > most:
        return draw_held_out(forget, most / len(forget), rng)[1]
    common = np.setdiff1d(np.arange(len(forget)), rare)
    return np.sort(np.concatenate([rare, rng.permutation(common)[: most - len(rare)]]))


def _draw_halves(pool: Pool, fold: NDArray[np.int16], seed: int) -> Rows:
    """Draw the half (n,) of every example, 0 or 1, evenly within each domain in each fold."""
    rng = np.random.default_rng(derive_seed(seed, HALF))
    forget, groups = pool.forget, pool.groups
    half = np.empty(len(forget), dtype=np.int64)
    for i in range(int(fold.max()) + 1):
        if has_groups(groups):
            rows = np.flatnonzero(fold == i)
            half[rows] = draw_by_group(forget[rows], groups[rows], np.full(2, 0.5), rng)
            continue
        for domain in (forget, ~forget):
            members = rng.permutation(np.flatnonzero(domain & (fold == i)))
            # Odd ones go to either half in turn, or one half would be the smaller in all folds.
            half[members] = (np.arange(len(members)) + i) % 2
    return half


def logit_midpoint(logits: Doubles, forget: Mask) -> float:
    """Return the midpoint between the mean logit of the forget and that of the retain examples."""
    return float((logits[forget].mean() + logits[~forget].mean()) / 2)


def derive_seed(*keys: int) -> int:
    """Derive a seed below 2**32 for one part of a job, independent of those of other parts."""
    return int(np.random.SeedSequence(keys).generate_state(1)[0])
