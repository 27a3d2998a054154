"""What models of a run recover of the gap in held-out forget NLL, whatever the run was.

    python -m studies.tokens.recovered results newsgroups smollm2_frozen --seeds 1 2 3

Of longer texts: the run was that of ``studies/evidence/config.yaml`` with 256 for each
``max_length``, and ``limit: {forget: 96, retain: 192}``.

From beta 0, 0, to the gold standard, 1: means over seeds with 95% t intervals, and the difference
in nats of retain NLL to the gold standard. All models take the same steps.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mamushi.evaluation.paired import interval
from mamushi.io.tables import FORGET, RETAIN
from studies.lib.cells import arguments
from studies.lib.report import Report

Doubles = NDArray[np.float64]


def of(folder: Path, arm: str) -> dict[str, float]:
    """Held-out NLL by domain, and the tokens that it is the mean of."""
    table = pq.read_table(folder / "arms" / arm / "perplexity.parquet").to_pylist()
    nll = {row["domain"]: row["nll"] for row in table}
    return nll | {f"{row['domain']}_length": row["tokens"] / row["texts"] for row in table}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--budgets", nargs="+", default=["0.25"])
    selectors = ["token_unigram", "token_random", "stack", "random"]
    parser.add_argument("--selectors", nargs="+", default=selectors)
    args = parser.parse_args()
    report = Report("recovered", threads=1)
    folders = [args.run / "runs" / args.dataset / args.model / f"seed{s}" for s in args.seeds]

    def shown(name: str, values: Doubles) -> None:
        low, high = interval(values)
        report.value(name, f"{values.mean():+.3f} [{low:+.3f}, {high:+.3f}]")

    def every(arm: str, name: str) -> Doubles:
        return np.array([of(folder, arm)[name] for folder in folders], dtype=np.float64)

    start, gold = every("beta0", FORGET), every("gold", FORGET)
    shown("gap_nats", gold - start)
    report.value("tokens_of_a_forget_text", float(every("gold", f"{FORGET}_length").mean()))
    for budget in args.budgets:
        for selector in args.selectors:
            arm, name = f"retrained/{selector}/beta{budget}", f"{selector}_{budget}"
            shown(f"{name}_recovered", (every(arm, FORGET) - start) / (gold - start))
            shown(f"{name}_retain_less_gold", every(arm, RETAIN) - every("gold", RETAIN))
    report.write(args.results)


if __name__ == "__main__":
    main()
