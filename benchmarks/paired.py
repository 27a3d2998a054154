"""The rankings of a run beside the truth, and beside `mamushi` at the same seeds.

    python benchmarks/paired.py results

Reads the scores that are there, so also those of a run that is not finished: per dataset, model,
selector and seed the AUC, Spearman's correlation with the exact log-density ratio over the forget
texts, and what `auto` chose; per dataset, model and selector the mean paired difference to
`mamushi` in both, with its 95% interval over seeds where there are two or more.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np

from mamushi.evaluation.paired import interval
from mamushi.io import paths
from mamushi.io.tables import read_metadata
from report import Report, arguments

OURS = "mamushi"
MEASURES = {"auc": "auc", "spearman": "spearman_with_truth"}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("run", type=Path, help="the folder of results of a run")
    args = parser.parse_args()
    report = Report("paired", threads=1)
    found: dict[tuple[str, str, str], dict[int, float]] = defaultdict(dict)
    for path in sorted(args.run.glob("runs/*/*/*/scores/*.parquet")):
        where = paths.wildcards(paths.SCORES, path)
        assert where is not None
        details = read_metadata(path)["details"]
        cell, selector, seed = (
            f"{where['dataset']}/{where['model']}",
            where["selector"],
            where["seed"],
        )
        for short, name in MEASURES.items():
            if (value := details.get(name)) is not None:
                found[cell, selector, short][int(seed)] = value
                report.value(f"{cell}/{short}:{selector}_seed{seed}", float(value))
        if "chosen" in details:
            report.value(f"{cell}/chosen:{selector}_seed{seed}", details["chosen"])
    for (cell, selector, short), values in found.items():
        ours = found.get((cell, OURS, short), {})
        seeds = sorted(values.keys() & ours.keys())
        if selector == OURS or not seeds:
            continue
        apart = np.array([values[seed] - ours[seed] for seed in seeds])
        said = f"{apart.mean():+.4f}"
        if len(seeds) > 1:
            low, high = interval(apart)
            said += f" [{low:+.4f}, {high:+.4f}]"
        report.value(f"{cell}/{short}:{selector}_less_{OURS}", f"{said} seeds {len(seeds)}")
    print(report.write(args.results))


if __name__ == "__main__":
    main()
