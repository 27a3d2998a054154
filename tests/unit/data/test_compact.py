"""Columns in pieces hold what a list holds, in as little memory as their bytes."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from pathlib import Path
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


def test_text_is_an_arrow_column_that_shares_its_pieces() -> None:
    column = Compact(CELLS["text"])
    arrow = column.arrow()
    assert arrow is not None and arrow.type == pa.string() and arrow.to_pylist() == CELLS["text"]
    assert strings(CELLS["text"]).equals(arrow)
    same = column.changed(lambda cell: cell).arrow()
    assert same is not None
    # But for the last one, whose cells may become more.
    assert [*map(_address, same.chunks)][:-1] == [*map(_address, arrow.chunks)][:-1]
    assert column.changed(lambda cell: f"{cell}!") == [f"{cell}!" for cell in CELLS["text"]]
    pieces = [cell for piece in column.pieces() for cell in piece.to_pylist()]
    assert pieces == CELLS["text"]
    for name in ("mixed", "surrogates"):
        assert Compact(CELLS[name]).arrow() is None


def test_what_is_too_much_lies_on_disk_and_is_let_go(tmp_path: Path) -> None:
    script = """
import resource
from mamushi.data import compact

def most():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

compact.HELD = compact.CHARACTERS = 2**22
import numpy as np, pyarrow
pyarrow.array(["a"])
before = most()
text = "x" * 2048
column = compact.Compact(f"{i} {text} " for i in range(2**17))
kept = compact.some(column.changed(str.strip), np.arange(len(column)) % 2 == 0)
for piece in kept.pieces():
    pass
assert kept[-1] == f"{2**17 - 2} {text}", kept[-1][:20]
print(most() - before)
"""
    run = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    # Of 640 MiB in three columns; some pieces of 4 MiB are worked on at a time.
    assert float(run.stdout) < 200
    assert not [*tmp_path.iterdir()]


def _address(piece: pa.Array) -> int:
    return int(piece.buffers()[2].address)


def test_a_full_disk_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full() -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(compact, "HELD", 0)
    monkeypatch.setattr(compact.tempfile, "TemporaryFile", full)
    monkeypatch.setattr(compact.tempfile, "tempdir", str(tmp_path))
    with pytest.raises(OSError, match=re.escape(f"No space left on device: '{tmp_path}'")):
        Compact("abcd")
