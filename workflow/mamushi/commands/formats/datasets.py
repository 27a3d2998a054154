"""folder of Hugging Face datasets with the splits forget and retain, for load_from_disk"""

from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from mamushi.commands._source import Source

FOLDER = True
TEXTS = True
BATCH = 1000
SHARD = "data-00000-of-00001.arrow"


def write(source: Source, out: Path) -> None:
    """Write as ``DatasetDict.save_to_disk`` does, without the library."""
    splits = {True: "forget", False: "retain"}
    (out / "dataset_dict.json").write_text(json.dumps({"splits": [*splits.values()]}))
    schema = pa.schema([("id", pa.string()), *((name, pa.string()) for name in source.names)])
    with contextlib.ExitStack() as files:
        writers: dict[bool, Any] = {}
        waiting: dict[bool, list[dict[str, str]]] = {True: [], False: []}
        for on_the_list, name in splits.items():
            (out / name).mkdir()
            stream = pa.ipc.new_stream(str(out / name / SHARD), schema)
            writers[on_the_list] = files.enter_context(stream)

        def flush(split: bool) -> None:
            writers[split].write_batch(pa.RecordBatch.from_pylist(waiting[split], schema=schema))
            waiting[split].clear()

        for row in source.rows():
            waiting[row.on_the_list].append({"id": row.id, **row.cells})
            if len(waiting[row.on_the_list]) == BATCH:
                flush(row.on_the_list)
        for split in splits:
            flush(split)
    for name in splits.values():
        _describe(out / name, schema)


def _describe(folder: Path, schema: pa.Schema) -> None:
    """Write what ``datasets`` reads beside the rows of a split."""
    with (folder / SHARD).open("rb") as handle:
        content = hashlib.file_digest(handle, "sha256").hexdigest()
    state: dict[str, Any] = {
        "_data_files": [{"filename": SHARD}],
        "_fingerprint": content[:16],
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": folder.name,
    }
    features = {name: {"dtype": "string", "_type": "Value"} for name in schema.names}
    info = {"citation": "", "description": "", "features": features, "homepage": "", "license": ""}
    for name, about in (("state.json", state), ("dataset_info.json", info)):
        (folder / name).write_text(json.dumps(about, indent=2), encoding="utf-8")
