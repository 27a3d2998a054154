"""The paper's table of run times: fit and ranking of each selector, over seeds, beside the paper's.

    python -m benchmarks runtime              small, a minute on two cores
    python -m benchmarks runtime --full       at the paper's size: Jigsaw as Gemma-2-2B embeds it

Embeddings are synthetic and in memory, on one thread. Mamushi has one network a fold, as in the
paper, there by scikit-learn. The paper stops K-Center at 60% of the forget set; here it ranks all.
"""

from __future__ import annotations

import time

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from mamushi.evidence.tables import RUNTIMES
from mamushi.registry import plugin
from mamushi.selection.pool import Pool, rank_forget, scored_by
from studies.lib.pools import synthetic
from studies.lib.report import Report, arguments

PAPER = (79_786, 2304, 0.1017)
"""Texts of the half of Jigsaw that is ranked, width of Gemma-2-2B, share of the forget domain."""
SMALL = (6_000, 768, 0.1017)


def main() -> None:
    """Time all selectors of the paper's table."""
    parser = arguments(__doc__)
    parser.add_argument("--full", action="store_true", help="the paper's size")
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    torch.set_num_threads(1)
    report = Report("runtime", threads=1)
    n, width, share = PAPER if args.full else SMALL
    pool = synthetic(n, width, share)
    few = pool.part(np.arange(n) < 500)
    for name, number in (("texts", n), ("forget", int(pool.forget.sum())), ("width", width)):
        report.value(name, number)
    for name, (mean, deviation) in RUNTIMES.items():
        # What is imported and started once is no part of a selection.
        seconds(name, few, 0)
        with threadpool_limits(1):
            times = np.array([seconds(name, pool, seed) for seed in range(args.seeds)])
        for clock, values in zip(("wall", "cpu"), times.T, strict=True):
            report.value(f"{name}_{clock}_mean_seconds", float(values.mean()))
            report.value(f"{name}_{clock}_sd_seconds", float(values.std(ddof=1)))
        report.value(f"{name}_paper_mean_seconds", mean)
        report.value(f"{name}_paper_sd_seconds", deviation)
    print(report.write(args.results))


def seconds(name: str, pool: Pool, seed: int) -> tuple[float, float]:
    """Wall and CPU time of the fit and the ranking of all forget texts by one selector."""
    settings = plugin("selector", name).defaults
    if "seeds_averaged" in settings:
        settings["seeds_averaged"] = 1
    wall, cpu = time.perf_counter(), time.process_time()
    rank_forget(pool, scored_by(name, pool, settings, seed))
    return time.perf_counter() - wall, time.process_time() - cpu


if __name__ == "__main__":
    main()
