"""What each ranking is worth, and what it costs, on the texts of a finished run.

    python -m studies.rankings.run results/runs/newsgroups/smollm2/seed0 --examples \\
        results/data/newsgroups/examples.parquet

Per selector: the mean AUC over `--seeds` of folds, with the standard deviation between them; the
AUC of the mean scores less that of `mamushi`, with its 95% interval for the sample of texts; for
synthetic texts Spearman's correlation with the exact log-density ratio over the forget texts; and
the CPU seconds of one ranking on one thread. And the AUC of each under shuffled labels, whose mean
is 0.5 if no label has a part in its own score.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mamushi.registry import load, plugin
from mamushi.running.threads import one_for_arithmetic
from mamushi.selection.metrics import auc, auc_difference, spearman
from mamushi.selection.pool import Pool, read_pool
from studies.lib.report import Report, arguments

OURS = "mamushi"
RANKINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "mamushi": ("mamushi", {"seeds_averaged": 10}),
    "mamushi_lr": ("mamushi_lr", {}),
    "linear_0.25": ("linear", {"depths": [0.25]}),
    "linear_0.5": ("linear", {"depths": [0.5]}),
    "linear_0.75": ("linear", {"depths": [0.75]}),
    "linear_1": ("linear", {"depths": [1]}),
    "linear_all": ("linear", {"depths": [0.25, 0.5, 0.75, 1]}),
    "lexical": ("lexical", {}),
    "lr_cos": ("lr_cos", {}),
    "lr_maha": ("lr_maha", {}),
    "lr_maha_sample": ("lr_maha", {"covariance": "sample"}),
    "lr_maha_folds": ("lr_maha", {"folds": 5}),
    "auto": ("auto", {}),
}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument(
        "run", type=Path, help="a cell with embeddings, and layers for all rankings"
    )
    parser.add_argument("--examples", type=Path, required=True, help="its dataset's examples")
    parser.add_argument("--seeds", type=int, default=5, help="of folds and networks")
    parser.add_argument("--rankings", nargs="+", choices=RANKINGS, help="beside mamushi; or all")
    parser.add_argument("--batch-size", type=int, help="of the networks; their default otherwise")
    args = parser.parse_args()
    one_for_arithmetic()
    layers = args.run / "layers.parquet"
    pool = read_pool(
        args.run / "embeddings.parquet",
        args.examples,
        layers=layers if layers.exists() else None,
        texts=True,
    )
    report = Report("rankings", threads=1)
    report.value("forget_texts", int(pool.forget.sum()))
    report.value("retain_texts", int((~pool.forget).sum()))
    report.value("width", pool.width)
    if args.batch_size:
        RANKINGS[OURS][1]["batch_size"] = args.batch_size
    labels = np.random.default_rng(0).permutation(pool.forget)
    shuffled = replace(pool, forget=labels, truth=None)
    ours: np.ndarray[Any, Any] | None = None
    for name, (kind, changes) in RANKINGS.items():
        if args.rankings and name not in (OURS, *args.rankings):
            continue
        start = time.process_time()
        drawn = [scores(pool, kind, changes, seed) for seed in range(args.seeds)]
        seconds = (time.process_time() - start) / args.seeds
        areas = [auc(scored, pool.forget) for scored in drawn]
        mean = np.mean([standard(scored) for scored in drawn], axis=0)
        report.value(f"{name}_auc", float(np.mean(areas)))
        report.value(f"{name}_auc_sd", float(np.std(areas, ddof=1)) if len(areas) > 1 else 0.0)
        if ours is None:
            ours = mean
        for end, value in zip(
            ("", "_low", "_high"),
            auc_difference(mean, ours, pool.forget, pool.groups),
            strict=True,
        ):
            report.value(f"{name}_less_{OURS}{end}", value)
        if pool.truth is not None:
            correlations = [
                spearman(scored[pool.forget], pool.truth[pool.forget]) for scored in drawn
            ]
            report.value(
                f"{name}_spearman", float(np.mean([x for x in correlations if x is not None]))
            )
        report.value(f"{name}_cpu_seconds", seconds)
        report.value(f"{name}_shuffled_auc", auc(scores(shuffled, kind, changes, 0), labels))
    print(report.write(args.results))


def scores(pool: Pool, kind: str, changes: dict[str, Any], seed: int) -> np.ndarray[Any, Any]:
    """Scores (n,) by a selector of this kind, with its defaults but for the changes."""
    settings = {**plugin("selector", kind).defaults, **changes}
    if settings.get("networks") == OURS:
        settings["networks"] = {**plugin("selector", OURS).defaults, **RANKINGS[OURS][1]}
    values: np.ndarray[Any, Any] = load("selector", kind).score(pool, settings, seed).scores
    return values


def standard(scores: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Scores at mean 0 and standard deviation 1, so that seeds count alike."""
    return (scores - scores.mean()) / (scores.std() or 1.0)


if __name__ == "__main__":
    main()
