"""How loose the paper's transfer bound is, over random worlds in which both sides are known.

    python -m studies.theory.run [--worlds 1000]

The bounds are those of `mamushi.evidence.theory`, the worlds those of `theory_worlds` beside it:
the target `theory` has them as a table. This prints it for a number of worlds of one's own.
"""

from __future__ import annotations

from mamushi.evidence.theory_worlds import looseness
from studies.lib.report import Report, arguments


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--worlds", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    report = Report("theory")
    for row in looseness(args.worlds, args.seed):
        name = row["bound"]
        report.value(f"{name}_held", f"{row['held']} of {row['worlds']}")
        for quantile in ("q05", "median", "q95"):
            value = row[f"ratio_{quantile}"]
            report.value(f"{name}_over_regret_{quantile}", "none" if value is None else value)
    report.write(args.results)


if __name__ == "__main__":
    main()
