"""folder of Hugging Face datasets with the splits forget and retain, for load_from_disk"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from mamushi.commands._source import Source

FOLDER = True
TEXTS = True
BATCH = 1000
SHARD = "data-00000-of-00001.arrow"


def write(source: Source, out: Path) -> None:
    """As ``DatasetDict.save_to_disk`` does, without the library."""
    (out / "dataset_dict.json").write_text(json.dumps({"splits": ["forget", "retain"]}))
    schema = pa.schema([("id", pa.string()), *((name, pa.string()) for name in source.names)])
    with (
        _split(out / "forget", schema) as forget,
        _split(out / "retain", schema) as retain,
    ):
        for row in source.rows():
            (forget if row.on_the_list else retain).append({"id": row.id, **row.cells})


class _Rows:
    """Rows that are written a batch at a time."""

    def __init__(self, writer: Any, schema: pa.Schema) -> None:
        self.writer, self.schema = writer, schema
        self.waiting: list[dict[str, Any]] = []

    def append(self, row: dict[str, Any]) -> None:
        self.waiting.append(row)
        if len(self.waiting) == BATCH:
            self.flush()

    def flush(self) -> None:
        self.writer.write_batch(pa.RecordBatch.from_pylist(self.waiting, schema=self.schema))
        self.waiting.clear()


@contextlib.contextmanager
def _split(folder: Path, schema: pa.Schema) -> Iterator[_Rows]:
    folder.mkdir()
    with pa.ipc.new_stream(str(folder / SHARD), schema) as writer:
        rows = _Rows(writer, schema)
        yield rows
        rows.flush()
    with (folder / SHARD).open("rb") as handle:
        content = hashlib.file_digest(handle, "sha256").hexdigest()
    features = {name: {"dtype": "string", "_type": "Value"} for name in schema.names}
    state: dict[str, Any] = {
        "_data_files": [{"filename": SHARD}],
        "_fingerprint": content[:16],
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": folder.name,
    }
    info = {"citation": "", "description": "", "features": features, "homepage": "", "license": ""}
    for name, about in (("state.json", state), ("dataset_info.json", info)):
        (folder / name).write_text(json.dumps(about, indent=2), encoding="utf-8")
