"""How many texts a ranking, its AUC and an advised budget take, on real texts with cheap vectors.

    python -m studies.sample_size.run newsgroups 20news-bydate.tar.gz
    python -m studies.sample_size.run jigsaw FOLDER

For each size n, `--repeats` times: two disjoint draws of n forget and n retain texts, and common
texts of neither. Per estimator, as means: the AUC of the cross-fitted scores of the first draw and
the width of its 95% interval; the share of the top tenth of the common forget texts on which
estimators that are fitted on either draw agree, with the standard deviation over repeats; the width
of the interval of the advised budget, for half of the removal and for 0.05 nats of preservation,
and in how many repeats there is none. Where the texts do not suffice for two draws, there is one
and no agreement.
"""

from __future__ import annotations

import contextlib
import io
import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mamushi.evidence.advice import predicted_budget
from mamushi.evidence.calibration import RatioScores, halves_of
from mamushi.evidence.verdict import judge_scores, ratio_checks
from mamushi.registry import load, plugin
from mamushi.running.threads import one_for_arithmetic
from mamushi.selection.crossfit import Task
from mamushi.selection.linear import estimate_sgd
from mamushi.selection.mlp import estimate_mlp
from mamushi.selection.pool import Pool
from mamushi.selection.refits import WHOLE_REFIT, make_refits
from mamushi.selection.statistics import standard_scale
from studies.lib.cheap import corpus, texts_option
from studies.lib.report import Report, arguments
from studies.worlds.run import RESAMPLES, TARGETS, expected

Rows = NDArray[np.int64]
SIZES = (75, 150, 300, 600, 1200)
ESTIMATORS: dict[str, tuple[str, dict[str, Any]]] = {
    "mamushi_lr": ("mamushi_lr", {}),
    "one_network": ("mamushi", {"seeds_averaged": 1, "batch_size": 256}),
}


def main() -> None:
    parser = arguments(__doc__)
    texts_option(parser)
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES, help="texts of a domain")
    parser.add_argument("--common", type=int, default=150, help="texts of a domain in no draw")
    parser.add_argument("--repeats", type=int, default=4, help="pairs of draws of a size")
    args = parser.parse_args()
    start = time.process_time()
    one_for_arithmetic()
    pool = corpus(args)
    report = Report("sample_size", threads=1)
    report.name = f"sample_size-{args.kind}"
    report.value("forget_texts", int(pool.forget.sum()))
    report.value("retain_texts", int((~pool.forget).sum()))
    report.value("common_forget_texts", args.common)
    for name, (kind, changes) in ESTIMATORS.items():
        settings = {**plugin("selector", kind).defaults, **changes}
        for n in args.sizes:
            tried = []
            for repeat in range(args.repeats):
                common, *draws = drawn(pool, n, args.common, np.random.default_rng([n, repeat]))
                if draws:
                    tried.append(examined(pool, kind, settings, common, draws, repeat))
            for measure, value in summary(tried).items():
                report.value(f"{name}_{n}_{measure}", value)
    report.value("cpu_seconds", time.process_time() - start)
    print(report.write(args.results))


def drawn(pool: Pool, n: int, common: int, rng: np.random.Generator) -> list[Rows]:
    """The rows of the common texts, and of one or two disjoint draws of n texts of a domain, as far
    as there are enough."""
    shuffled = [rng.permutation(np.flatnonzero(of)) for of in (pool.forget, ~pool.forget)]
    ends = [0, common, common + n, common + 2 * n]
    least = min(map(len, shuffled))
    return [
        np.sort(np.concatenate([rows[begin:end] for rows in shuffled]))
        for begin, end in pairwise(ends)
        if end <= least
    ]


def examined(
    pool: Pool,
    kind: str,
    settings: Mapping[str, Any],
    common: Rows,
    draws: Sequence[Rows],
    seed: int,
) -> dict[str, Any]:
    """What one repeat tells, see above."""
    of_draw = np.zeros(len(pool.ids), dtype=np.bool_)
    of_draw[draws[0]] = True
    part = pool.part(of_draw)
    with contextlib.redirect_stderr(io.StringIO()):
        first = load("selector", kind).score(part, settings, seed)
        refitted = make_refits(part, kind, settings, seed, 2, 1)
    assert first.fold is not None
    scores = RatioScores(
        first.scores, part.forget, first.fold.astype(np.int64), halves_of(refitted)
    )
    whole = [scores_.scores for name, _, scores_ in refitted if name == WHOLE_REFIT]
    judged = judge_scores(scores, whole, ratio_checks(scores, scores.estimate(), RESAMPLES, seed))
    curve, _ = expected(scores, judged.reason, seed)
    values: dict[str, Any] = {"auc": judged.auc, "width": judged.auc_high - judged.auc_low}
    for target, value in TARGETS:
        values[target] = predicted_budget([curve], target, value)
    if len(draws) == 2:
        forget = common[pool.forget[common]]
        size = len(forget) // 10
        scored = [fitted(pool, kind, settings, rows, forget, seed) for rows in draws]
        tops = [set(np.argsort(-scores_, kind="stable")[:size].tolist()) for scores_ in scored]
        values["agreement"] = len(tops[0] & tops[1]) / size
    return values


def fitted(
    pool: Pool, kind: str, settings: Mapping[str, Any], train: Rows, held: Rows, seed: int
) -> NDArray[np.float64]:
    """The scores of the rows ``held`` by an estimator that is fitted on the rows ``train``."""
    x = pool.embeddings[train].astype(np.float64)
    mean = x.mean(axis=0)
    scale = standard_scale(len(x), mean, x.var(axis=0))
    task = Task(pool.embeddings, pool.forget, train, held, mean, scale, seed)
    if kind == "mamushi_lr":
        return estimate_sgd(task, settings)[0]
    (fit,) = estimate_mlp([task], settings)
    return fit[0]


def summary(tried: Sequence[Mapping[str, Any]]) -> dict[str, float | str]:
    """The numbers of a size, over its repeats."""
    if not tried:
        return {"repeats": 0}
    values: dict[str, float | str] = {"repeats": len(tried)}
    values["auc"] = float(np.mean([trial["auc"] for trial in tried]))
    values["auc_width"] = float(np.mean([trial["width"] for trial in tried]))
    agreed = [trial["agreement"] for trial in tried if "agreement" in trial]
    if agreed:
        values["agreement"] = float(np.mean(agreed))
        values["agreement_sd"] = float(np.std(agreed, ddof=1)) if len(agreed) > 1 else 0.0
    for target, _ in TARGETS:
        advised = [trial[target] for trial in tried]
        sure = [trial for trial in advised if trial["reason"] is None]
        values[f"{target}_withheld"] = f"{len(tried) - len(sure)} of {len(tried)}"
        if sure:
            widths = [trial["budget_high"] - trial["budget_low"] for trial in sure]
            values[f"{target}_budget"] = float(np.mean([trial["budget"] for trial in sure]))
            values[f"{target}_width"] = float(np.mean(widths))
    return values


if __name__ == "__main__":
    main()
