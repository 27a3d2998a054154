"""Tables for people: no cell of a CSV file is one that a spreadsheet runs."""

import csv
from pathlib import Path

import pyarrow as pa

from mamushi.io.tables import write_csv

CELLS = {
    '=HYPERLINK("http://x","y")': '\'=HYPERLINK("http://x","y")',
    "@SUM(A1)": "'@SUM(A1)",
    "-2+3": "'-2+3",
    " =1": "' =1",
    "\ufeff=1": "'\ufeff=1",
    "\uff1d1": "'\uff1d1",
    "\ttab": "'\ttab",
    "\rreturn": "'\rreturn",
    "": "",
    "-5": "-5",
    "+1.5e-3": "+1.5e-3",
    "a=b": "a=b",
    "user@example.org": "user@example.org",
}
"""By what the table holds: what the CSV file does."""


def test_texts_alone_are_changed(tmp_path: Path) -> None:
    n = len(CELLS)
    table = pa.table({"text": list(CELLS), "number": [-1.5] * n, "count": pa.array([-7] * n)})
    write_csv(tmp_path / "t.csv", table.append_column("none", pa.nulls(n, pa.string())))
    with (tmp_path / "t.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["text", "number", "count", "none"]
    assert rows[1:] == [[cell, "-1.5", "-7", ""] for cell in CELLS.values()]
