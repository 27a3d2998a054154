"""Tables for people: no cell of a CSV file is one that a spreadsheet runs."""

from __future__ import annotations

import csv
from pathlib import Path

import pyarrow as pa
import pytest

from mamushi.io.tables import inert, write_csv
from tests.support.cells import CELLS


@pytest.mark.parametrize("cell", CELLS)
def test_a_formula_becomes_text_and_a_number_stays_one(cell: str) -> None:
    assert inert(cell) == CELLS[cell]


def test_texts_alone_are_changed(tmp_path: Path) -> None:
    n = len(CELLS)
    table = pa.table({"text": list(CELLS), "number": [-1.5] * n, "count": pa.array([-7] * n)})
    write_csv(tmp_path / "t.csv", table.append_column("none", pa.nulls(n, pa.string())))
    with (tmp_path / "t.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["text", "number", "count", "none"]
    assert rows[1:] == [[cell, "-1.5", "-7", ""] for cell in CELLS.values()]
