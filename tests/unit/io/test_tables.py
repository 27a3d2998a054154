"""Row groups of tables that do not fit into memory, and pages that are damaged."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mamushi.errors import UserError
from mamushi.io import schemas, tables


def test_row_groups_of_long_texts_are_small_and_together_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "GROUP_BYTES", 2**20)
    n = 100
    columns = {
        "id": [str(i) for i in range(n)],
        "text": [f"{i} " + "x" * 40_000 for i in range(n)],
        "domain": ["forget"] * n,
        "section": ["inference"] * n,
        "log_density_ratio": pa.nulls(n, pa.float64()),
        "group": pa.nulls(n, pa.string()),
    }
    path = tmp_path / "examples.parquet"
    tables.write_table(path, schemas.EXAMPLES, columns)
    rows = pq.ParquetFile(path).metadata.row_group(0).num_rows
    assert rows == 2**20 * n // tables.read_table(path, schemas.EXAMPLES).nbytes
    parts = [*tables.read_groups(path, schemas.EXAMPLES, ["id", "text"])]
    assert [len(part) for part in parts] == [rows] * (n // rows) + [n % rows]
    assert pa.concat_tables(parts).to_pydict() == {name: columns[name] for name in ("id", "text")}


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
