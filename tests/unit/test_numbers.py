"""Every number in a measured table of the documentation is that of its file.

Such a table stands below a comment that says from which file of ``studies`` or
``benchmarks/results`` each of its cells is::

    <!-- numbers
    file: studies/networks/agreement-demo-2026-11-22-amd-epyc-2-cores.txt
    rows: [1, 5]                                   # put for {} in the keys of the row
    columns: ["networks_{}_overlap", "networks_{}_low networks_{}_high"]   # from the second column
    -->

A cell has the numbers of its keys in their order, rounded as they are written there. Of several
files, ``files`` gives each a name, and keys end in ``@NAME``. In a CSV file,
``column?name=value&...`` is the mean of the column over those rows. ``<!-- numbers: none, WHY -->``
stands above a table whose numbers are from no file.
"""

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
TABLE = re.compile(r"((?:<!-- numbers[^>]*?-->\n\n)?)((?:^\|.*\n)+)", re.M)
NUMBER = re.compile(r"(?<![\w.])[-+−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?%?(?!\w|\.\d)")
MEASURED = re.compile(r"^\**[-+−]?\d[\d,]*(?:\.\d+)?%?\**(?=$|,| [\[(])|[-+−\d.]+ \[[-+−]?\d")


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_every_measured_table_is_that_of_its_file(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for comment, table in TABLE.findall(re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)):
        lines = [re.split(r"(?<!\\)\|", line)[1:-1] for line in table.splitlines()[2:]]
        rows = [[cell.strip() for cell in cells[1:]] for cells in lines]
        if "columns:" in comment:
            compare(rows, yaml.safe_load(comment.strip().removeprefix("<!-- numbers")[:-3]))
        elif "none" not in comment:
            measured = [cell for cells in rows for cell in cells if MEASURED.search(cell)]
            assert not measured, f"no file is named for {measured}"


def compare(rows: list[list[str]], spec: dict[str, Any]) -> None:
    """Assert that each cell has the numbers of its keys."""
    for name, cells in zip(spec["rows"], rows, strict=True):
        for cell, keys in zip(cells, spec["columns"], strict=True):
            written = NUMBER.findall(re.sub(r"`[^`]*`|\]\([^)]*\)", " ", cell))
            if written:
                every = (values(key, spec) for key in keys.replace("{}", str(name)).split())
                filed = [value for numbers in every for value in numbers]
                assert len(written) == len(filed), (name, cell, filed)
                assert all(map(is_rounded, written, filed)), (name, cell, filed)


def is_rounded(written: str, value: float) -> bool:
    plain = written.replace("−", "-").replace(",", "").rstrip("%")
    half = 0.5 * 10.0 ** -len(plain.partition(".")[2])
    return abs(float(plain) - value * (100 if written.endswith("%") else 1)) <= half * (1 + 1e-6)


def values(key: str, spec: dict[str, Any]) -> list[float]:
    """The numbers under a key in its file."""
    key, _, name = key.partition("@")
    path = ROOT / (spec["files"][name] if name else spec["file"])
    if path.suffix == ".csv":
        column, _, wanted = key.partition("?")
        rows = pd.read_csv(path, dtype=str)
        for name, value in (each.split("=") for each in wanted.split("&")):
            rows = rows[rows[name] == value]
        return [float(rows[column].astype(float).mean())]
    (line,) = (x for x in path.read_text("utf-8").splitlines() if x.startswith(f"{key} "))
    plain = re.split(r" (?:seeds|p_holm) ", line.removeprefix(key))[0]
    return [float(number) for number in re.findall(r"[-+]?\d+\.?\d*(?:e[-+]?\d+)?", plain)]
