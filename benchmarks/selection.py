"""Selectors: time beside scikit-learn's, on synthetic embeddings, on one thread.

    python -m benchmarks selection            small, a few minutes on two cores
    python -m benchmarks selection --examples 20000 --width 2304 --points 8115

`mlp_*` is the selector mamushi against its `estimator: sklearn`, fold by fold, `kcenter_*` the
ranking of all points against distances from the newest centre by scikit-learn, for `--picks` of
them. CPU times are those of one thread, and what is compared takes turns.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics.pairwise import euclidean_distances
from threadpoolctl import threadpool_limits

from mamushi.registry import load, plugin
from mamushi.selection.crossfit import Task, cross_fit
from mamushi.selection.metrics import auc, spearman
from mamushi.selection.mlp import estimate_mlp
from mamushi.selection.mlp_sklearn import fit_classifiers
from mamushi.selection.pool import Pool
from studies.lib.report import Report, arguments

FOLDS, SHARE, APART = 5, 0.1, 1 / 12
"""Of the cross-fitting; share of the forget domain, and how far it is off in every dimension."""


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--examples", type=int, default=6000, help="embeddings")
    parser.add_argument("--width", type=int, default=768, help="dimensions of an embedding")
    parser.add_argument("--points", type=int, default=2500, help="forget examples of K-Center")
    parser.add_argument("--picks", type=int, default=1500, help="picks of scikit-learn's loop")
    args = parser.parse_args()
    torch.set_num_threads(1)
    report = Report("selection", threads=1)
    with threadpool_limits(1):
        mlp(report, pool_of(args.examples, args.width, SHARE))
        kcenter(report, pool_of(args.points, args.width, 1.0), min(args.points, args.picks))
    print(report.write(args.results))


def pool_of(n: int, width: int, share: float) -> Pool:
    """Draw normal embeddings (n, width), of which a share is forget and shifted."""
    rng = np.random.default_rng(0)
    forget = rng.permutation(n) < round(share * n)
    x = rng.standard_normal((n, width), dtype=np.float32) + APART * forget[:, None]
    ids = np.array([f"t{i:07d}" for i in range(n)], dtype=object)
    return Pool(ids, forget, x.astype(np.float16))


def mlp(report: Report, pool: Pool) -> None:
    """Report seconds, epochs and AUC of either estimator, and how alike they rank."""
    tasks: list[Task] = []

    def keep(task: Task) -> tuple[NDArray[np.float64], dict[str, Any]]:
        tasks.append(task)
        return np.zeros(len(task.held)), {}

    cross_fit(pool, FOLDS, 0, keep, "folds")
    settings = plugin("selector", "mamushi").defaults
    recipe = {k: v for k, v in settings.items() if k not in ("fit_sample", "folds")}
    recipe["seeds_averaged"] = 1
    fits: dict[str, Iterator[Any]] = {
        "ours_bf16": estimate_mlp(tasks, {**recipe, "precision": "bf16"}),
        "ours_fp32": estimate_mlp(tasks, {**recipe, "precision": "fp32"}),
        "sklearn": fit_classifiers(tasks, recipe),
    }
    seconds, epochs = dict.fromkeys(fits, 0.0), dict.fromkeys(fits, 0)
    logits = {name: np.empty(len(pool.ids)) for name in fits}
    for task in tasks:
        for name, fit in fits.items():
            began = time.process_time()
            logits[name][task.held], details = next(fit)
            seconds[name] += time.process_time() - began
            epochs[name] += details["epochs"]
    for name in fits:
        report.value(f"mlp_{name}_cpu_seconds", seconds[name])
        report.value(f"mlp_{name}_epochs", epochs[name])
        report.value(f"mlp_{name}_auc", f"{auc(logits[name], pool.forget):.5f}")
        report.value(f"mlp_{name}_ratio", seconds["sklearn"] / seconds[name])
        alike = spearman(logits[name][pool.forget], logits["sklearn"][pool.forget])
        report.value(f"mlp_{name}_spearman_with_sklearn", f"{alike:.4f}")


def kcenter(report: Report, pool: Pool, picks: int) -> None:
    """Report seconds of the whole ranking, and of so many picks of scikit-learn's loop."""
    began = time.process_time()
    order = load("selector", "kcenter").score(pool, {}, 0).order
    taken = time.process_time() - began
    x = pool.embeddings.astype(np.float32)
    nearest = np.full(len(x), np.inf, dtype=np.float32)
    pick, theirs = int(order[0]), []
    began = time.process_time()
    for _ in range(picks):
        theirs.append(pick)
        np.minimum(nearest, euclidean_distances(x, x[pick : pick + 1])[:, 0], out=nearest)
        nearest[pick] = -1
        pick = int(nearest.argmax())
    loop = time.process_time() - began
    report.value("kcenter_cpu_seconds", taken)
    report.value("kcenter_sklearn_cpu_seconds", loop)
    report.value("kcenter_ratio", loop / taken)
    same = len(set(order[:picks].tolist()) & set(theirs))
    report.value("kcenter_same_set", f"{same}/{picks}")


if __name__ == "__main__":
    main()
