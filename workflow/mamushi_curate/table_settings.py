"""How a Parquet file, Arrow stream or Arrow file was written, so that another one is written so."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from mamushi.data.columnar import Reader, library_errors, open_reader
from mamushi.io import tabular


@contextlib.contextmanager
def opened_writer(
    path: Path, handle: Any, schema: pa.Schema, sink: Any
) -> Iterator[Callable[[pa.Table, Any], None]]:
    """Open a writer to ``sink`` with the settings of the open file ``handle``: a function that
    writes a table as one row group or record batch, with the batch's own metadata. Arrow is written
    without compression, which the library does not tell of a file."""
    source = open_reader(path, handle).source
    if tabular.format_of(path) == "parquet":
        with library_errors(path):
            settings = _parquet_settings(source)
        with pq.ParquetWriter(sink, schema, **settings) as writer:
            if b"ARROW:schema" not in (source.metadata.metadata or {}):
                writer.add_key_value_metadata(schema.metadata or {})
            yield lambda table, _: writer.write_table(table, row_group_size=len(table))
        return
    is_file = isinstance(source, pa.ipc.RecordBatchFileReader)
    about = {"metadata": source.metadata} if is_file and source.metadata else {}
    options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    start = pa.ipc.new_file if is_file else pa.ipc.new_stream
    with start(sink, schema, options=options, **about) as writer:
        yield lambda table, about: writer.write_batch(
            table.combine_chunks().to_batches()[0], custom_metadata=about
        )


def _parquet_settings(source: pq.ParquetFile) -> dict[str, Any]:
    """Return the options of a writer; those of columns by the first row group."""
    leaves = [source.schema.column(at) for at in range(len(source.schema))]
    settings: dict[str, Any] = {
        "store_schema": b"ARROW:schema" in (source.metadata.metadata or {}),
        "use_deprecated_int96_timestamps": any(one.physical_type == "INT96" for one in leaves),
        "use_compliant_nested_type": any(".list.element" in leaf.path for leaf in leaves),
        "store_decimal_as_integer": any(
            leaf.logical_type.type == "DECIMAL" and leaf.physical_type.startswith("INT")
            for leaf in leaves
        ),
    }
    if source.num_row_groups == 0:
        return settings
    # Of a damaged footer this is an error, and what comes next the end of the process.
    next(source.iter_batches(1, row_groups=[0]), None)
    group = source.metadata.row_group(0)
    chunks = [group.column(at) for at in range(group.num_columns)]
    return settings | {
        "compression": {
            chunk.path_in_schema: chunk.compression.replace("UNCOMPRESSED", "NONE")
            for chunk in chunks
        },
        "use_dictionary": [c.path_in_schema for c in chunks if c.has_dictionary_page] or False,
        "write_statistics": [c.path_in_schema for c in chunks if c.is_stats_set] or False,
        "write_page_index": any(chunk.has_offset_index for chunk in chunks),
        "sorting_columns": group.sorting_columns or None,
    }


def meanings(reader: Reader) -> dict[str, str]:
    """Return the types that other programs see and Arrow may not, as ENUM, by column of Parquet. Of
    numbers, texts and times the schema tells them."""
    if not reader.is_parquet:
        return {}
    leaves = [reader.source.schema.column(at) for at in range(len(reader.source.schema))]
    types = {leaf.path: str(leaf.logical_type).partition("(")[0] for leaf in leaves}
    types |= {leaf.path: "INT96" for leaf in leaves if leaf.physical_type == "INT96"}
    return {path: name for path, name in types.items() if name not in ("None", "Int")}
