"""What texts and tokens of most influence recover of the gap, and what measuring them took.

    python -m studies.influence.run results texts.csv tokens.csv

The tables `effects` of the two runs of README.md, and the logs of the second. Shares of the gap to
the gold standard with 95% intervals; CPU seconds of whole jobs of one seed, in one thread.
"""

from __future__ import annotations

import csv
from pathlib import Path

from mamushi_runs.commands._bill import FINISHED
from studies.lib import report

MEASURES = {"recovered": "recovered", "deep": "deep", "retain_change": "retain"}
JOBS = ("embed", "beta0", "influence")


def cpu_seconds(results: Path, job: str, seed: int) -> float:
    """Return the CPU seconds of a cell's job by its log."""
    (log,) = results.glob(f"logs/{job}/*/*/seed{seed}.log")
    return float(FINISHED.findall(log.read_text(encoding="utf-8"))[-1][1])


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("run", type=Path, help="the folder of results")
    parser.add_argument("tables", type=Path, nargs="+", help="tables `effects` as CSV")
    parser.add_argument("--seed", type=int, default=1, help="of the jobs that are timed")
    args = parser.parse_args()
    printed = report.Report("effects-jigsaw", threads=1)
    for path in args.tables:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            for column, name in MEASURES.items():
                ends = [float(row[f"{column}{end}"]) for end in ("", "_low", "_high")]
                digits = "+.4f" if name == "retain" else "+.2f"
                value, low, high = (format(x, digits) for x in ends)
                printed.value(f"{row['selector']}_{row['beta']}_{name}", f"{value} [{low}, {high}]")
        for name in ("seeds", "deep_gap"):
            printed.value(name, float(rows[0][name]))
    for job in JOBS:
        printed.value(f"{job}_cpu_seconds", cpu_seconds(args.run, job, args.seed))
    printed.write(args.results)


if __name__ == "__main__":
    main()
