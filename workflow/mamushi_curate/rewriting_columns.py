"""A Parquet file, Arrow stream or Arrow file written again without some of its rows: with the
schema, metadata and settings that it had, a row group or record batch at a time. All is read again,
and refused unless every value is the one that was read."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from mamushi.errors import UserError
from mamushi.io.files import sha256
from mamushi_curate.cutting import cut_column
from mamushi_curate.matching import RowRemoval
from mamushi_curate.tables import columnar
from mamushi_curate.tables.columnar import Reader, library_errors, open_reader
from mamushi_curate.tables.lines import check_columns
from mamushi_curate.tables.opening import open_binary


def write_columns(path: Path, out: Path, removal: RowRemoval, digests: dict[str, str]) -> str:
    """Write ``path`` to ``out`` without what ``removal`` takes; ``digests`` gets what was read.
    Return the SHA-256 of the file. Raises ``UserError`` for what cannot be read, and for what would
    not be the same."""
    with library_errors(path), open_binary(path, digests) as handle, out.open("wb+") as written:
        source = open_reader(path, handle)
        check_columns(path, columnar.column_names(source.schema), removal.columns)
        decisions = [*removal.of_tables(source.blocks([*dict.fromkeys(removal.columns)]), path)]
        count = sum(len(stays) for stays, _ in decisions)
        labels, schema = columnar.pandas_labels(source.schema, count)

        def remaining(int96: str = "ns") -> Iterator[pa.Table]:
            start = 0
            blocks = open_reader(path, handle, int96).blocks()
            for table, (stays, cuts) in zip(blocks, decisions, strict=True):
                if labels is not None:
                    column = labels[0].slice(start, len(table))
                    table = table.append_column(labels.column_names[0], column)
                table, start = table.replace_schema_metadata(schema.metadata), start + len(table)
                table = cut_column(table, removal.text or "", cuts)
                if len(table := _filter(table, stays, removal.columns)):
                    # A batch of Arrow is one chunk.
                    yield table if source.is_parquet else table.combine_chunks()

        # Of columns, the settings of the first row group.
        make = _parquet_writer if source.is_parquet else _arrow_writer
        with make(source, schema, written) as writer:
            for table in remaining():
                writer.write_table(table, len(table))
        result = open_reader(path, written)
        types, types_again = _types(source), _types(result)
        lost = [
            f"column {name!r} would lose its type, {kind}"
            for name, kind in types.items() - types_again.items()
        ]
        is_same = result.schema.equals(schema, check_metadata=True) and not lost
        # INT96 beyond nanoseconds is read wrong in the same way both times; in "us" it is not.
        for unit in ("ns", "us") if "INT96" in types.values() else ("ns",):
            blocks = open_reader(path, written, unit).blocks()
            for pair in itertools.zip_longest(remaining(unit), blocks):
                is_same = is_same and None not in pair and columnar.are_same(*pair)
        if not is_same:
            problem = f"cannot be written again as it is ({[*lost, 'its values'][0]})"
            raise UserError(problem, where=path, do="leave out what is not numbers or text")
    return sha256(out)


def _filter(table: pa.Table, stays: pa.BooleanArray, read: list[str]) -> pa.Table:
    """Return the rows that stay. Types that would keep the bytes of rows that go are made anew:
    views, runs, and dictionaries of the texts and ids."""
    if stays.false_count == 0:
        return table
    outer = {*read, *(name.partition(".")[0] for name in read)}
    columns = [
        pa.array([*itertools.compress(column.to_pylist(), stays.to_pylist())], column.type)
        if re.search("_view|run_end" + "|dictionary" * (name in outer), str(column.type))
        else column.filter(stays)
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=table.schema)


def _arrow_writer(source: Reader, schema: pa.Schema, sink: Any) -> Any:
    """Make a writer without compression, which the library does not tell of a file."""
    is_file = isinstance(source.source, pa.ipc.RecordBatchFileReader)
    options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    return (pa.ipc.new_file if is_file else pa.ipc.new_stream)(sink, schema, options=options)


def _parquet_writer(source: Reader, schema: pa.Schema, sink: Any) -> pq.ParquetWriter:
    file = source.source
    group = file.metadata.row_group(0) if file.num_row_groups else None
    # Of a damaged footer this is an error, and what comes next the end of the process.
    next(file.iter_batches(1, row_groups=[0] if group else []), None)
    chunks = [group.column(at) for at in range(group.num_columns)] if group else []
    has_schema = b"ARROW:schema" in (file.metadata.metadata or {})
    writer = pq.ParquetWriter(
        sink,
        schema,
        compression={
            c.path_in_schema: c.compression.replace("UNCOMPRESSED", "NONE") for c in chunks
        },
        use_dictionary=[c.path_in_schema for c in chunks if c.has_dictionary_page] or False,
        write_statistics=[c.path_in_schema for c in chunks if c.is_stats_set] or False,
        write_page_index=any(chunk.has_offset_index for chunk in chunks),
        sorting_columns=(group and group.sorting_columns) or None,
        store_schema=has_schema,
        use_deprecated_int96_timestamps="INT96" in _types(source).values(),
        use_compliant_nested_type=any(".list.element" in c.path_in_schema for c in chunks),
    )
    if not has_schema:
        writer.add_key_value_metadata(schema.metadata or {})
    return writer


def _types(reader: Reader) -> dict[str, str]:
    """Return the types that other programs see and Arrow may not, as ENUM, by column of Parquet."""
    schema = reader.source.schema
    leaves = [schema.column(at) for at in range(len(schema))] if reader.is_parquet else []
    types = {leaf.path: str(leaf.logical_type).partition("(")[0] for leaf in leaves}
    types |= {leaf.path: "INT96" for leaf in leaves if leaf.physical_type == "INT96"}
    return {path: name for path, name in types.items() if name not in ("None", "Int")}
