"""Columns in pieces hold what a list holds, in as little memory as their bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mamushi.data import compact
from mamushi.data.compact import Compact, some, strings

CELLS: dict[str, list[Any]] = {
    "text": ["a", "", None, "ä", "e" * 9, "f", "g"],
    "mixed": ["a", 1, None, [2], "e", "f", 1.5],
    "surrogates": ["a", "\ud800", "c", "d", "e", "f", "g"],
    "none": [],
}


@pytest.fixture(autouse=True, params=[0, 2**27], ids=["on disk", "in memory"])
def _small_pieces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compact, "ROWS", 3)
    monkeypatch.setattr(compact, "CHARACTERS", 8)
    monkeypatch.setattr(compact, "HELD", request.param)


@pytest.mark.parametrize("cells", CELLS.values(), ids=CELLS)
def test_cells_are_those_of_a_list(cells: list[Any]) -> None:
    column = Compact(cells)
    assert [*column] == cells and column == cells and len(column) == len(cells)
    assert [column[i] for i in range(-len(cells), len(cells))] == cells * 2
    assert column[1:-1] == cells[1:-1]
    kept = np.arange(len(cells)) % 2 == 1
    assert some(column, kept) == cells[1::2]
    assert some(column, ~kept | kept) is column
    assert column != [*cells, "more"] and column != "text"
    with pytest.raises(IndexError):
        column[len(cells)]


def test_text_is_an_arrow_column() -> None:
    arrow = Compact(CELLS["text"]).arrow()
    assert arrow.type == pa.string() and arrow.to_pylist() == CELLS["text"]
    assert strings(CELLS["text"]).equals(arrow)
    assert strings([]).equals(pa.chunked_array([], pa.string()))
    for name in ("mixed", "surrogates"):
        with pytest.raises((pa.ArrowException, UnicodeError)):
            Compact(CELLS[name]).arrow()


def test_arrays_keep_their_type_and_narrow_numbers_are_printed_as_others_print_them() -> None:
    column = Compact()
    for cells in ([0.7, None], [0.1]):
        column.add(pa.array(cells, pa.float32()))
    assert column == [0.7, None, 0.1] and column.arrow().type == pa.float32()
    column.add(pa.array([1]))
    assert column.arrow().to_pylist() == [0.7, None, 0.1, 1.0]
