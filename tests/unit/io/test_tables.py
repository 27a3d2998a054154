"""Pages that are damaged, and tables for people: no cell of a CSV file is one that a spreadsheet
runs."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mamushi.errors import UserError
from mamushi.io import schemas, tables


@pytest.mark.parametrize("plain", [False, True])
def test_no_flipped_bit_of_a_page_is_read(tmp_path: Path, plain: bool) -> None:
    kind = schemas.EMBEDDINGS if plain else schemas.TOKENS
    rng, n = np.random.default_rng(0), 2000
    values = rng.standard_normal(n * 16).astype(np.float16)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(values), 16)
    tokens = pa.array([rng.integers(0, 9999, 16).astype(np.int32) for _ in range(n)])
    columns: dict[str, Any] = {"id": [f"t{i}" for i in range(n)]}
    columns |= {"domain": ["forget"] * n, "embedding": vectors} if plain else {"tokens": tokens}
    tables.write_table(path := tmp_path / "a.parquet", kind, columns)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)
    with pytest.raises(UserError, match="damaged"):
        tables.read_table(path, kind)
    with pytest.raises(UserError, match="damaged"):
        [*tables.read_groups(path, kind)]


CELLS = {
    '=HYPERLINK("http://x","y")': '\'=HYPERLINK("http://x","y")',
    "\ufeff =1": "'\ufeff =1",
    "\rreturn": "'\nreturn",
    "": "",
    "user@example.org": "user@example.org",
}
"""By what the table holds: what the CSV file does."""


def test_texts_alone_are_changed(tmp_path: Path) -> None:
    n = len(CELLS)
    table = pa.table({"text": list(CELLS), "number": [-1.5] * n, "count": pa.array([-7] * n)})
    tables.write_csv(tmp_path / "t.csv", table.append_column("none", pa.nulls(n, pa.string())))
    with (tmp_path / "t.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["text", "number", "count", "none"]
    assert rows[1:] == [[cell, "-1.5", "-7", ""] for cell in CELLS.values()]
