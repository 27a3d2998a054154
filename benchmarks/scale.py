"""How the cost of a selection grows: with examples, with dimensions, and with budgets.

    python benchmarks/scale.py           small, a few minutes on two cores
    python benchmarks/scale.py --full    10,000 to 80,000 examples, 256 to 4,096 dimensions

Of every selector `exponent_n` and `exponent_d` are slopes of log CPU seconds against log size, by
least squares. One thread; sizes take turns, and each one's median counts. What iterates until it
converges is held to a fixed number of iterations: how soon it converges depends on the data. Every
ranking is made once, however many budgets there are; `budgets_*` is what more of them cost.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from pools import by_embeddings, synthetic

from mamushi.registry import load, plugin
from mamushi.selection.pool import Pool, Scored, rank
from mamushi.selection.removals import count
from report import RESULTS, Report

FIXED: dict[str, dict[str, Any]] = {
    "mamushi": {"epochs": 2, "precision": "fp32"},
    "mamushi_lr": {"epochs": 3, "tolerance": 0},
}
"""Settings under which the work does not depend on when the fit stops."""

BUDGETS = (1, 9, 99)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--full", action="store_true", help="the paper's sizes")
    parser.add_argument("--selectors", nargs="+", help="all that derive from no other by default")
    parser.add_argument("--sizes", nargs="+", type=int, help="numbers of examples")
    parser.add_argument("--widths", nargs="+", type=int, help="numbers of dimensions")
    parser.add_argument("--repeats", type=int, default=3, help="the median of these counts")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder to write to")
    args = parser.parse_args()

    import torch
    from threadpoolctl import threadpool_limits

    torch.set_num_threads(1)
    names = args.selectors or by_embeddings()
    report = Report("scale", torch.cuda.get_device_name() if torch.cuda.is_available() else None, 1)
    full = args.full
    sizes = args.sizes or [s * (5 if full else 1) for s in (2_000, 4_000, 8_000, 16_000)]
    widths = args.widths or ([256, 512, 1024, 2048, 4096] if full else [64, 128, 256, 512])
    with threadpool_limits(1):
        growth(report, "n", {n: (n, widths[0]) for n in sizes}, names, args.repeats)
        growth(report, "d", {d: (sizes[0], d) for d in widths}, names, args.repeats)
        budgets(report, synthetic(sizes[-1], widths[0]), names)
    print(report.write(args.results))


def growth(
    report: Report, what: str, sizes: dict[int, tuple[int, int]], names: list[str], repeats: int
) -> None:
    """CPU seconds of every selector at every size (examples, dimensions), and the exponent."""
    pools = {at: synthetic(n, d) for at, (n, d) in sizes.items()}
    for name in names:
        call = selection(name)
        call(synthetic(500, 32))
        taken: dict[int, list[float]] = {at: [] for at in sizes}
        for repeat in range(repeats):
            for at, pool in pools.items():
                # One is enough where a call takes long beside the noise.
                if repeat == 0 or max(taken[at]) < 2:
                    taken[at].append(cpu(call, pool))
        median = {at: float(np.median(found)) for at, found in taken.items()}
        for at, seconds in median.items():
            report.value(f"cpu_seconds_{name}_{what}{at}", seconds)
        report.value(f"exponent_{what}_{name}", exponent(median))


def exponent(seconds: dict[int, float]) -> float:
    """The slope of log seconds against log size."""
    x, y = np.log(list(seconds)), np.log(list(seconds.values()))
    return float(np.polyfit(x, y, 1)[0])


def selection(name: str) -> Callable[[Pool], Scored]:
    """The selector with its defaults, but for what is in FIXED."""
    settings = {**plugin("selector", name).defaults, **FIXED.get(name, {})}
    return lambda pool: load("selector", name).score(pool, settings, 0)


def cpu(call: Callable[[Pool], object], pool: Pool) -> float:
    """CPU seconds of a call, of as many in a row as take a tenth of a second."""
    start, calls = time.process_time(), 0
    while calls == 0 or time.process_time() - start < 0.1:
        call(pool)
        calls += 1
    return (time.process_time() - start) / calls


def budgets(report: Report, pool: Pool, names: list[str]) -> None:
    """Passes over the embeddings, and seconds, of rankings that serve more and more budgets."""
    passes = [0]

    class Counted(Pool):
        def blocks(self, *args: Any) -> Any:
            passes[0] += 1
            return super().blocks(*args)

    counted = Counted(**{key: getattr(pool, key) for key in ("ids", "forget", "embeddings")})
    counted = replace(counted, truth=pool.truth)
    name = "lr_cos" if "lr_cos" in names else names[0]
    n1 = int(pool.forget.sum())
    for number in BUDGETS:
        passes[0] = 0
        start = time.process_time()
        order = rank(counted, selection(name)(counted))
        scored = time.process_time() - start
        start = time.process_time()
        shares = np.linspace(0, 1, number + 2)[1:-1]
        lists = [pool.ids[order[: count(float(f"{share:.4f}"), n1)]] for share in shares]
        taken = time.process_time() - start
        assert all(set(a) <= set(b) for a, b in pairwise(lists))
        report.value(f"budgets_{number}_rankings", 1)
        report.value(f"budgets_{number}_passes", passes[0])
        report.value(f"budgets_{number}_selection_cpu_seconds", scored)
        report.value(f"budgets_{number}_lists_cpu_seconds", taken)


if __name__ == "__main__":
    main()
