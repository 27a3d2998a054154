"""Show how time and memory grow with the number of texts: docs/guide/scale.svg, and its table.

    python -m benchmarks curve

It reads the newest result of `scale` and of `screen`, and measures nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns

from mamushi.figures.style import HEIGHT, HOUSE, MARKS, PALETTE, REFERENCE, WIDTH, legend_below

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parents[1] / "docs/guide/scale.md"
PICTURE = PAGE.with_suffix(".svg")
BLOCK = """<!-- made by benchmarks/curve.py -->

<!-- numbers: none, they are made from the results and held against them by a test -->

{}

<!-- end of the table -->"""
STAGES = ("examples", "import-embeddings", "score", "refits", "calibrate", "stability", "manifests")
"""Of texts with labels, in the order of the data."""
SCREEN = "screen, all stages"
TIME, MEMORY = "CPU seconds", "GiB of a process"
TICKS = (0.25, 0.5, 1, 2, 4)
QUANTITIES = {"cpu_seconds": TIME, "rss_gib": MEMORY}


def main() -> None:
    rows = measurements()
    draw(rows, PICTURE)
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), rows), encoding="utf-8")
    print(PICTURE)


def measurements() -> pd.DataFrame:
    """Return what was measured: ``line``, ``n``, ``quantity``, ``value``."""
    labelled = [
        (stage, n, quantity, value)
        for stage, n, quantity, value in _values(newest("scale-texts"))
        if stage in STAGES
    ]
    screened = [
        (SCREEN, n, quantity, value)
        for stage, n, quantity, value in _values(newest("screen"))
        if stage == "all"
    ]
    rows = pd.DataFrame([*labelled, *screened], columns=["line", "n", "quantity", "value"])
    rows["line"] = pd.Categorical(rows["line"], [*STAGES, SCREEN])
    return rows.sort_values(["quantity", "line", "n"], ignore_index=True)


def newest(name: str) -> Path:
    """Return the newest result of a benchmark; of several of a day the last by name."""
    dated = [path for path in RESULTS.glob(f"{name}-*.txt") if path.name[len(name) + 1] == "2"]
    return max(dated, key=lambda path: path.name)


def _values(path: Path) -> Iterator[tuple[str, int, str, float]]:
    """Yield stage, number of texts, quantity and value of the lines of a result, whose names have
    the quantity before the stage, or behind ``all``."""
    names = "|".join(QUANTITIES)
    of_stage, of_all = rf"(?P<of>{names})_(?P<stage>[a-z-]+)", rf"all_(?P<of_all>{names})"
    pattern = re.compile(rf"(?:{of_stage}|{of_all})_n(?P<n>\d+) (?P<value>\S+)")
    for line in path.read_text(encoding="utf-8").splitlines():
        if match := pattern.match(line):
            quantity = QUANTITIES[match["of"] or match["of_all"]]
            yield match["stage"] or "all", int(match["n"]), quantity, float(match["value"])


def with_table(page: str, rows: pd.DataFrame) -> str:
    """Return the page with the table of ``rows``."""
    sizes = sorted(rows.n.unique())
    values = rows.set_index(["line", "quantity", "n"]).value
    head = [f"{unit} at {n:,}" for unit in ("GiB", "CPU s") for n in sizes]
    cells = [["stage", *head], ["---"] * (1 + len(head))]
    for line in rows.line.cat.categories:
        memory = [f"{values[line, MEMORY, n]:.2f}" for n in sizes]
        time = [f"{values[line, TIME, n]:,.0f}" for n in sizes]
        cells.append([f"`{line}`" if line in STAGES else line, *memory, *time])
    table = "\n".join(f"| {' | '.join(row)} |" for row in cells)
    begin, *_, end = BLOCK.splitlines()
    before, rest = page.split(begin)
    return before + BLOCK.format(table) + rest.split(end)[1]


def draw(rows: pd.DataFrame, path: Path) -> None:
    """Draw a panel of each quantity, on logarithmic scales; a dashed line has the slope 1."""
    look = {
        "hue": "line",
        "style": "line",
        "palette": dict(zip([*STAGES, SCREEN], PALETTE, strict=False)),
        "markers": dict(zip([*STAGES, SCREEN], MARKS, strict=False)),
        "dashes": False,
    }
    with mpl.rc_context(HOUSE | {"svg.fonttype": "none", "svg.hashsalt": "mamushi"}):
        drawn = sns.relplot(
            rows,
            x="n",
            y="value",
            col="quantity",
            kind="line",
            markeredgewidth=0,
            facet_kws={"sharey": False, "legend_out": False},
            **look,
        )
        drawn.set(xscale="log", yscale="log", xlabel="texts", ylabel="").set_titles("{col_name}")
        drawn.axes_dict[MEMORY].set_yticks(TICKS, [f"{tick:g}" for tick in TICKS])
        drawn.axes_dict[MEMORY].minorticks_off()
        times = rows[rows.quantity == TIME]
        ends = [times.n.min(), times.n.max()]
        middle = times[times.n == ends[0]].value.median()
        drawn.axes_dict[TIME].plot(
            ends, [middle, middle * ends[1] / ends[0]], label="slope 1", **REFERENCE
        )
        drawn.legend.remove()
        drawn.figure.set_size_inches(WIDTH, HEIGHT + 0.8)
        legend_below(drawn.figure)
        drawn.figure.savefig(path, metadata={"Date": None})
        plt.close(drawn.figure)


if __name__ == "__main__":
    main()
