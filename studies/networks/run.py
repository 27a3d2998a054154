"""How many networks a text's score has to average until another complete run ranks alike.

    python -m studies.networks.run results/runs/newsgroups/llama-3.1-8b/seed0/embeddings.parquet

A complete run of k networks is the selector mamushi with `seeds_averaged: k`: k cross-fittings,
each with folds of its own. Per k: the share of the top tenth of the forget texts that two runs have
in common and the rank correlation of their forget texts, means over pairs of runs drawn from twice
as many cross-fittings as the largest k, and the CPU seconds of one run on one thread.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mamushi.io import schemas
from mamushi.io.tables import FORGET, read_table
from mamushi.registry import plugin
from mamushi.running.threads import one_for_arithmetic
from mamushi.selection.crossfit import Fit, Task, averaged, cross_fit_together
from mamushi.selection.metrics import auc, spearman
from mamushi.selection.pool import Pool
from studies.lib.report import Report, arguments

Doubles = NDArray[np.float64]
FOLDS = 5
PAIRS = 40
"""Pairs of runs that a mean is taken over."""


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("embeddings", type=Path, help="the embeddings.parquet of a finished run")
    parser.add_argument("--networks", nargs="+", type=int, default=[1, 5, 10, 25, 50])
    parser.add_argument("--batch-size", type=int, help="of the selector; its default otherwise")
    args = parser.parse_args()
    one_for_arithmetic()
    pool, most = read(args.embeddings), max(args.networks)
    settings = plugin("selector", "mamushi").defaults
    settings |= {"batch_size": args.batch_size or settings["batch_size"]}
    report = Report("agreement", threads=1)
    report.value("forget_texts", int(pool.forget.sum()))
    report.value("retain_texts", int((~pool.forget).sum()))
    report.value("width", pool.width)
    report.value("batch_size", settings["batch_size"])
    runs = Runs(pool, settings, 2 * most)
    report.value("auc", auc(runs.scores(range(2 * most)), pool.forget))
    for k in sorted(args.networks):
        pairs = [compared(first, second, pool.forget) for first, second in runs.pairs(k)]
        overlap, order = np.mean(pairs, axis=0)
        report.value(f"networks_{k}_other_folds_overlap", float(overlap))
        report.value(f"networks_{k}_other_folds_spearman", float(order))
        report.value(f"networks_{k}_cpu_seconds", k * runs.seconds)
    print(report.write(args.results))


def read(path: Path) -> Pool:
    """The texts of one run, as a selector sees them."""
    table = read_table(path, schemas.EMBEDDINGS)
    vectors = table["embedding"].combine_chunks()
    matrix = vectors.flatten().to_numpy().reshape(len(table), -1)
    ids, domain = (np.array(table[name].to_pylist(), dtype=object) for name in ("id", "domain"))
    return Pool(ids, domain == FORGET, matrix)


class Runs:
    """Cross-fittings of ``most`` sets of folds; ``seconds`` of the CPU are one's."""

    def __init__(self, pool: Pool, settings: dict[str, Any], most: int) -> None:
        from mamushi.selection.mlp import estimate_mlp

        self.tasks: list[Task] = []
        self.logits: list[Doubles] = []
        start = time.process_time()

        def estimate(tasks: Sequence[Task]) -> Iterator[Fit]:
            self.tasks = list(tasks)
            for fit in estimate_mlp(tasks, settings):
                self.logits.append(fit[0])
                yield fit

        cross_fit_together(pool, FOLDS, 0, estimate, "cross-fittings", most)
        self.most, self.seconds = most, (time.process_time() - start) / most
        self.rng = np.random.default_rng(0)

    def scores(self, chosen: Sequence[int]) -> Doubles:
        """Return the scores (texts,) of a run that averages these cross-fittings."""
        places = [i * FOLDS + fold for i in chosen for fold in range(FOLDS)]
        tasks, logits = ([values[i] for i in places] for values in (self.tasks, self.logits))
        return averaged(tasks, logits, len(chosen))

    def pairs(self, k: int) -> Iterator[tuple[Doubles, Doubles]]:
        """Yield pairs of runs of ``k`` networks."""
        for _ in range(PAIRS):
            drawn = self.rng.permutation(self.most)
            yield self.scores(drawn[:k]), self.scores(drawn[k : 2 * k])


def compared(first: Doubles, second: Doubles, forget: NDArray[np.bool_]) -> tuple[float, float]:
    """Overlap of the top tenth of the forget texts, and Spearman's correlation over all of them."""
    a, b = first[forget], second[forget]
    count = max(1, round(0.1 * len(a)))
    tops = [set(np.argsort(-x, kind="stable")[:count].tolist()) for x in (a, b)]
    correlation = spearman(a, b)
    assert correlation is not None
    return len(tops[0] & tops[1]) / count, correlation


if __name__ == "__main__":
    main()
