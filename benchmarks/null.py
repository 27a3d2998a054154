"""Whether what is asked of models says chance where there is nothing to be found.

    python benchmarks/null.py results synthetic tiny-llama --seeds 0 1 2 3 4 5

Each attack's AUC, and its share of members at 1% false accusations, of the forget texts of the
inference section against held-out ones, under gold, which has seen neither, and under beta 0, which
has seen the first (`gold_*`, `beta0_*`). Intervals are of 95%, over seeds and texts.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mamushi.evaluation.attacks import (
    ATTACKS,
    Scored,
    auc,
    compare,
    likelihood_ratio,
    per_token,
    simple_scores,
    tpr,
)
from mamushi.evaluation.cohort import Cohort
from mamushi.io import paths, schemas
from mamushi.io.tables import FORGET, INFERENCE, read_table
from mamushi.running.threads import one_for_arithmetic
from report import Report, arguments

Doubles = NDArray[np.float64]

STATISTICS = ("nll", "tokens")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("root", type=Path, help="the folder of results of a finished run")
    parser.add_argument("dataset")
    parser.add_argument("model")
    parser.add_argument("--seeds", nargs="+", type=int, required=True)
    args = parser.parse_args()
    one_for_arithmetic()
    cohort = Cohort(args.dataset, args.model, tuple(args.seeds), args.root)
    report = Report("null", threads=1)
    attacked(report, cohort)
    report.write(args.results)


def columns(path: Path) -> dict[str, Doubles]:
    """What a model makes of the texts, (n,) each."""
    table = read_table(path, schemas.LIKELIHOODS)
    return {name: table[name].to_numpy().astype(np.float64) for name in STATISTICS}


def attacked(report: Report, cohort: Cohort) -> None:
    """Each attack on gold models and on beta 0."""

    def read(endpoint: str) -> list[dict[str, Doubles]]:
        return [columns(path) for path in cohort.files(paths.MEMBERSHIP, arm=endpoint)]

    (first, *_) = cohort.files(paths.MEMBERSHIP, arm="gold")
    sections = read_table(first, schemas.LIKELIHOODS)["section"].to_pylist()
    member = np.array([section == INFERENCE for section in sections])
    report.value("texts", f"{member.sum()} {FORGET} of {INFERENCE}, {(~member).sum()} held out")
    asked = {endpoint: read(endpoint) for endpoint in ("gold", "beta0")}
    base = cohort.files(paths.MEMBERSHIP, arm="base")[0]
    before = columns(base)
    outside, inside = (np.array([per_token(one) for one in asked[e]]) for e in ("gold", "beta0"))
    scores: dict[str, list[dict[str, Doubles]]] = {}
    for endpoint, models in asked.items():
        for seed, one in enumerate(models):
            others = np.arange(len(models)) != seed
            shadows = (outside[others], inside[others])
            each = dict(simple_scores(one, before))
            each["likelihood_ratio"] = likelihood_ratio(per_token(one), *shadows, seen=member)
            scores.setdefault(endpoint, []).append(each)
    for attack in ATTACKS:
        pairs = zip(scores["beta0"], scores["gold"], strict=True)
        seeds = [Scored(one[attack], two[attack], member, ~member) for one, two in pairs]
        for what, measure in (("auc", auc), ("tpr", tpr)):
            found = compare(seeds, measure)
            for endpoint, value in (("gold", found.gold), ("beta0", found.model)):
                report.value(f"{endpoint}_{attack}_{what}", value.value)
                interval = f"{value.low:.4g} {value.high:.4g}"
                report.value(f"{endpoint}_{attack}_{what}_interval", interval)


if __name__ == "__main__":
    main()
