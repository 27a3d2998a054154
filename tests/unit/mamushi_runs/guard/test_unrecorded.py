"""What results say of their making, read without a reader of Parquet."""

import struct
from pathlib import Path

import pyarrow as pa

from mamushi.artifacts import schemas
from mamushi.artifacts.tables import write_table
from mamushi_runs.guard.unrecorded import provenance


def test_the_programs_name_in_a_column_is_not_taken_for_the_key(tmp_path: Path) -> None:
    """Statistics of a column of selectors stand before the metadata in the footer."""
    made = {"provenance": {"settings": {"a": "{"}, "inputs": {"b": "c"}, "versions": {}}}
    (brace,) = struct.unpack("<d", b"{\0\0\0\0\0\xf0?")
    kinds = {pa.string(): "mamushi", pa.int64(): 1, pa.float64(): brace}
    row = {field.name: [kinds[field.type]] for field in schemas.FRONTIER.schema}
    write_table(tmp_path / "frontier.parquet", schemas.FRONTIER, row, metadata=made)
    assert provenance(tmp_path / "frontier.parquet") == made["provenance"]
    (tmp_path / "other.parquet").write_bytes(b"no footer")
    assert provenance(tmp_path / "other.parquet") is None
