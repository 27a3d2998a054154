"""Columns in Arrow hold what a list holds."""

import json
from typing import Any

import numpy as np
import pytest

from mamushi.data import cells
from mamushi.data.cells import Cells, take, to_cells

TEXT = ["a", "", None, "ä", "e" * 9, "f", "g"]


def mixed() -> Cells:
    values = ["a", 1, None, [2], {"\ud800": 1.5}, True, 2**70]
    return Cells(to_cells(zip(map(json.dumps, values)))[0].column, is_json=True)


@pytest.mark.parametrize("column", [lambda: to_cells(zip(TEXT))[0], mixed], ids=["text", "json"])
def test_cells_are_those_of_a_list(column: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "ROWS", 3)
    stored, n = column(), len(TEXT)
    values = [*stored]
    assert stored.column.num_chunks > 2 and len(values) == len(stored) == n
    assert [stored[i] for i in range(-n, n)] == values * 2 and stored[1:-1] == values[1:-1]
    chosen = np.arange(n) % 2 == 1
    assert [*take(stored, chosen)] == values[1::2] == take(stored, np.flatnonzero(chosen))
    with pytest.raises(IndexError):
        stored[n]
