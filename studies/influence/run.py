"""What texts and tokens of most influence recover of the gap, and what measuring them took.

    python -m studies.influence.run results jigsaw smollm2_frozen

Of the two runs of README.md, seed by seed: with two seeds an interval would span all shares. Shares
of the gap in held-out forget NLL to the gold standard, whole and deep, change of retain NLL from
beta 0 in nats, and CPU seconds of whole jobs by their logs.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mamushi.io import schemas
from mamushi.io.tables import EVALUATION, FORGET, RETAIN, read_table
from mamushi_runs.commands._bill import FINISHED
from studies.lib import report

ARMS = {
    "random": "retrained/random/beta0.50",
    "influence": "retrained/influence/beta0.50",
    "token_unigram": "retrained/token_unigram/beta0.10",
    "token_influence": "retrained/token_influence/beta0.10",
    "logit_bias": "logit_bias/whole",
    "tilt": "tilt/whole",
}
JOBS = ("embed", "beta0", "influence")


def measured(arm: Path, domain_of: dict[str, str]) -> dict[str, float]:
    """Return the mean held-out NLL of a model: of forget and retain texts, and the deep one."""
    rows = read_table(arm / "nll.parquet", schemas.NLL).to_pylist()
    sums = {}
    for domain in (FORGET, RETAIN):
        of_domain = [row for row in rows if domain_of[row["id"]] == domain]
        sums[domain] = sum(r["nll"] for r in of_domain) / sum(r["tokens"] for r in of_domain)
    raked = [row for row in rows if row["deep"] is not None]
    return sums | {"deep": sum(r["deep"] for r in raked) / sum(r["tokens"] for r in raked)}


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("run", type=Path, help="the folder of results")
    parser.add_argument("dataset")
    parser.add_argument("model")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    args = parser.parse_args()
    printed = report.Report(f"effects-{args.dataset}")
    examples = read_table(args.run / f"data/{args.dataset}/examples.parquet", schemas.EXAMPLES)
    held_out = [row for row in examples.to_pylist() if row["section"] == EVALUATION]
    domain_of = {row["id"]: row["domain"] for row in held_out}

    def by_seed(name: str, values: list[float], form: str) -> None:
        printed.value(name, " ".join(format(value, form) for value in values))

    cells = [args.run / f"runs/{args.dataset}/{args.model}/seed{seed}" for seed in args.seeds]
    start, gold = (
        [measured(cell / "arms" / arm, domain_of) for cell in cells] for arm in ("beta0", "gold")
    )
    for name in (FORGET, "deep"):
        gaps = [g[name] - s[name] for g, s in zip(gold, start, strict=True)]
        by_seed(f"gap_{name}", gaps, ".4f")
    for selector, arm in ARMS.items():
        left = [measured(cell / "arms" / arm, domain_of) for cell in cells]
        triples = list(zip(left, start, gold, strict=True))
        for name, column in ((FORGET, "recovered"), ("deep", "deep")):
            shares = [(x[name] - s[name]) / (g[name] - s[name]) for x, s, g in triples]
            by_seed(f"{selector}_{column}", shares, ".3f")
            printed.value(f"{selector}_{column}_mean", float(np.mean(shares)))
        changes = [x[RETAIN] - s[RETAIN] for x, s, _ in triples]
        by_seed(f"{selector}_retain", changes, "+.4f")
    for job in JOBS:
        folder = args.run / f"logs/{job}/{args.dataset}/{args.model}"
        logs = [(folder / f"seed{seed}.log").read_text(encoding="utf-8") for seed in args.seeds]
        by_seed(f"{job}_cpu_seconds", [float(FINISHED.findall(x)[-1][1]) for x in logs], ".1f")
    printed.write(args.results)


if __name__ == "__main__":
    main()
