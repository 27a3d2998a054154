"""Selectors: time, memory and agreement with scikit-learn, on embeddings of known density ratio.

    python -m benchmarks selection            small, a few minutes on two cores
    python -m benchmarks selection --full     80,000 x 2,304, on a GPU if there is one
    python -m benchmarks selection --examples 20000 --width 2304 --points 8115 --picks 4869

CPU times are those of one thread, and what is compared takes turns. `mlp_*` is the selector mamushi
against scikit-learn's MLPClassifier in float32, with the same folds, scaling, class weights and
rule of stopping. Each has seeds of its own, but for `mlp_same_draws_*`: ours with the draws that
scikit-learn makes from its first seed. `kcenter_*` is against distances from the newest centre by
scikit-learn, pick by pick.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mamushi.registry import load, plugin
from mamushi.selection.crossfit import Task, cross_fit, derive_seed
from mamushi.selection.metrics import auc, spearman
from mamushi.selection.pool import Pool
from studies.lib.pools import synthetic
from studies.lib.report import Report, arguments

FOLDS = 5
ARCHITECTURE = [1024, 512, 256]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--full", action="store_true", help="the paper's size; no scikit-learn MLP")
    parser.add_argument("--examples", type=int, help="embeddings")
    parser.add_argument("--width", type=int, help="dimensions of an embedding")
    parser.add_argument("--points", type=int, help="forget examples of K-Center")
    parser.add_argument(
        "--picks", type=int, help="picks of the loop that K-Center is compared with"
    )
    parser.add_argument("--share", type=float, default=0.1, help="of forget examples")
    args = parser.parse_args()
    examples = args.examples or (80_000 if args.full else 6_000)
    width = args.width or (2304 if args.full else 768)
    points = args.points or (8115 if args.full else 2500)
    picks = min(points, args.picks or (4869 if args.full else 1500))

    import torch
    from threadpoolctl import threadpool_limits

    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    threads = (os.cpu_count() or 1) if args.full else 1
    torch.set_num_threads(threads)
    report = Report("selection", gpu, threads)
    report.value("examples", examples)
    report.value("width", width)
    with threadpool_limits(threads):
        mlp(report, synthetic(examples, width, args.share), with_reference=not args.full)
        kcenter(report, points, width, picks)
    print(report.write(args.results))


class Clock:
    """Seconds of CPU and of wall time, of all threads, that the body of a `with` took."""

    def __enter__(self) -> Clock:
        _wait_for_gpu()
        self._start = time.process_time(), time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        _wait_for_gpu()
        self.cpu = time.process_time() - self._start[0]
        self.wall = time.perf_counter() - self._start[1]


def _wait_for_gpu() -> None:
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()


def mlp(report: Report, pool: Pool, with_reference: bool) -> None:
    """The torch estimator in both precisions, and scikit-learn's with two seeds, fold by fold."""
    tasks = tasks_of(pool)
    engines: dict[str, Iterator[Any]] = {
        f"ours_{precision}": ours(tasks, precision) for precision in ("bf16", "fp32")
    }
    if with_reference:
        engines |= {f"sklearn_seed{seed}": reference(tasks, seed) for seed in (0, 1)}
        engines["same_draws_bf16"] = same_draws(tasks, "bf16")
    else:
        warm_up(pool)
    seconds: dict[str, list[float]] = {name: [] for name in engines}
    wall: dict[str, float] = dict.fromkeys(engines, 0.0)
    epochs: dict[str, list[int]] = {name: [] for name in engines}
    logits = {name: np.empty(len(pool.ids)) for name in engines}
    for task in tasks:
        for name, fits in engines.items():
            with Clock() as clock:
                logits[name][task.held], details = next(fits)
            seconds[name].append(clock.cpu)
            report.value(f"mlp_{name}_fold{len(seconds[name]) - 1}_cpu_seconds", clock.cpu)
            wall[name] += clock.wall
            epochs[name].append(details["epochs"])
    forget = pool.forget
    assert pool.truth is not None
    for name in engines:
        report.value(f"mlp_{name}_cpu_seconds", sum(seconds[name]))
        report.value(f"mlp_{name}_wall_seconds", wall[name])
        report.value(f"mlp_{name}_epochs", sum(epochs[name]))
        report.value(f"mlp_{name}_auc", f"{auc(logits[name], forget):.5f}")
        rho = spearman(logits[name][forget], pool.truth[forget])
        report.value(f"mlp_{name}_spearman_with_truth", f"{rho:.4f}")
    report.value("mlp_auc_of_the_truth", f"{auc(pool.truth, forget):.5f}")

    def agreement(first: str, second: str) -> str:
        return f"{spearman(logits[first][forget], logits[second][forget]):.4f}"

    report.value("mlp_spearman_bf16_fp32", agreement("ours_bf16", "ours_fp32"))
    if not with_reference:
        return
    report.value("mlp_spearman_sklearn_two_seeds", agreement("sklearn_seed0", "sklearn_seed1"))
    report.value("mlp_spearman_sklearn_same_draws", agreement("sklearn_seed0", "same_draws_bf16"))
    for precision in ("bf16", "fp32"):
        name = f"ours_{precision}"
        for seed in (0, 1):
            them = f"sklearn_seed{seed}"
            report.value(f"mlp_spearman_{precision}_sklearn_seed{seed}", agreement(name, them))
        theirs = np.array([seconds[f"sklearn_seed{seed}"] for seed in (0, 1)])
        spent = np.array(seconds[name])
        report.value(f"mlp_{precision}_ratio", float(theirs.sum(axis=1).mean() / spent.sum()))
        report.value(f"mlp_{precision}_ratio_median_fold", float(np.median(theirs / spent)))
        per_epoch = np.array([epochs[f"sklearn_seed{seed}"] for seed in (0, 1)])
        of_epochs = (theirs / per_epoch) / (spent / np.array(epochs[name]))
        report.value(f"mlp_{precision}_ratio_median_epoch", float(np.median(of_epochs)))


def tasks_of(pool: Pool) -> list[Task]:
    """The folds of the cross-fitting, each with its statistics."""
    tasks: list[Task] = []

    def keep(task: Task) -> tuple[NDArray[np.float64], dict[str, Any]]:
        tasks.append(task)
        return np.zeros(len(task.held)), {}

    with open(os.devnull, "w", encoding="utf-8") as quiet, contextlib.redirect_stderr(quiet):
        cross_fit(pool, FOLDS, 0, keep, "folds")
    return tasks


def recipe() -> dict[str, Any]:
    """The settings of the selector mamushi that say how to train."""
    settings = {**plugin("selector", "mamushi").defaults, "hidden": ARCHITECTURE}
    left_out = {"fit_sample", "folds", "seeds_averaged"}
    return {k: settings[k] for k in settings.keys() - left_out}


def ours(tasks: list[Task], precision: str) -> Iterator[Any]:
    from mamushi.selection.mlp import estimate_mlp

    return estimate_mlp(tasks, {**recipe(), "precision": precision})


def reference(tasks: list[Task], seed: int) -> Iterator[Any]:
    from benchmarks.scikit import ByLoss
    from mamushi.selection.mlp_sklearn import fit_classifiers

    return fit_classifiers(seeded(tasks, seed), recipe(), ByLoss)


def same_draws(tasks: list[Task], precision: str) -> Iterator[Any]:
    """Ours from the weights, held-out parts and batches of ``reference`` with its first seed."""
    from benchmarks.scikit import replayed

    fits = ours(seeded(tasks, 0), precision)
    for _ in tasks:
        # Others take turns with it, which draw for themselves.
        with replayed():
            fit = next(fits)
        yield fit


def seeded(tasks: list[Task], seed: int) -> list[Task]:
    """The tasks with other seeds."""
    return [replace(task, seed=derive_seed(task.seed, seed)) for task in tasks]


def warm_up(pool: Pool) -> None:
    """A little of everything, so that a GPU's context and kernels are loaded before the clock."""
    few = Pool(pool.ids[:20000], pool.forget[:20000], pool.embeddings[:20000])
    for precision in ("bf16", "fp32"):
        for _ in ours(tasks_of(few), precision):
            pass


def kcenter(report: Report, points: int, width: int, picks: int) -> None:
    """The whole ranking by Gram matrix and without it, and ``picks`` of scikit-learn's loop."""
    from sklearn.metrics.pairwise import euclidean_distances

    module = load("selector", "kcenter")
    half = synthetic(points, width, 0.5).embeddings
    ids = np.array([f"t{i:07d}" for i in range(points)], dtype=object)
    pool = Pool(ids, np.ones(points, dtype=np.bool_), half)
    module.score(Pool(ids[:100], pool.forget[:100], half[:100]), {}, 0)
    with Clock() as clock:
        order = module.score(pool, {}, 0).order
    report.value("kcenter_points", points)
    report.value("kcenter_gram_cpu_seconds", clock.cpu)
    report.value("kcenter_gram_wall_seconds", clock.wall)
    x = half.astype(np.float32)
    nearest = np.full(points, np.inf, dtype=np.float32)
    pick, theirs = int(order[0]), []
    with Clock() as loop:
        for _ in range(picks):
            theirs.append(pick)
            np.minimum(nearest, euclidean_distances(x, x[pick : pick + 1])[:, 0], out=nearest)
            nearest[pick] = -1
            pick = int(nearest.argmax())
    report.value("kcenter_sklearn_picks", picks)
    report.value("kcenter_sklearn_cpu_seconds", loop.cpu)
    report.value("kcenter_ratio", loop.cpu / clock.cpu)
    same = len(set(order[:picks].tolist()) & set(theirs))
    report.value("kcenter_same_set", f"{same}/{picks}")
    report.value("kcenter_same_order", str(order[:picks].tolist() == theirs))


if __name__ == "__main__":
    main()
