"""A Parquet file, Arrow stream or Arrow file written again without some of its rows: with the
schema, metadata and settings that it had, a row group or record batch at a time. All is read again,
and refused unless every value is the one that was read."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from mamushi.errors import UserError
from mamushi.io.files import sha256
from mamushi_curate.cutting import cut_column
from mamushi_curate.matching import RowRemoval
from mamushi_curate.tables.columnar import Reader, column_names, library_errors, open_reader
from mamushi_curate.tables.lines import check_columns
from mamushi_curate.tables.opening import open_binary


def write_columns(path: Path, out: Path, removal: RowRemoval, digests: dict[str, str]) -> str:
    """Write ``path`` to ``out`` without what ``removal`` takes; ``digests`` gets what was read.
    Return the SHA-256 of the file. Raises ``UserError`` for what cannot be read, and for what would
    not be the same."""
    with library_errors(path), open_binary(path, digests) as handle, out.open("wb+") as written:
        source = open_reader(path, handle)
        check_columns(path, column_names(source.schema), removal.columns)
        decisions = [*removal.of_tables(source.blocks([*dict.fromkeys(removal.columns)]), path)]
        count = sum(len(stays) for stays, _ in decisions)
        labels, schema = _pandas_labels(source.schema, count)

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

        _write(source, schema, written, remaining())
        result = open_reader(path, written)
        types, types_again = _types(source), _types(result)
        lost = [
            f"column {name!r} would lose its type, {types[name]}"
            for name in types
            if types[name] != types_again.get(name)
        ]
        is_same = result.schema.equals(schema, check_metadata=True) and not lost
        # INT96 beyond nanoseconds is read wrong in the same way both times; in "us" it is not.
        for unit in ("ns", "us") if "INT96" in types.values() else ("ns",):
            blocks = open_reader(path, written, unit).blocks()
            for pair in itertools.zip_longest(remaining(unit), blocks):
                is_same = is_same and None not in pair and _are_same(*pair)
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


def _pandas_labels(schema: pa.Schema, count: int) -> tuple[pa.Table | None, pa.Schema]:
    """Return the range by which pandas labels the rows as a column, and the schema with it; None
    where rows count from 0."""
    about = json.loads((schema.metadata or {}).get(b"pandas", "{}"))
    if not (indices := [one for one in about.get("index_columns", ()) if isinstance(one, dict)]):
        return None, schema
    import pandas as pd

    labels = pd.RangeIndex(*(indices[0][end] for end in ("start", "stop", "step")))
    labels.name = indices[0]["name"]
    if len(labels) != count or labels.identical(pd.RangeIndex(count)):
        return None, schema
    column = pa.Table.from_pandas(pd.DataFrame(index=labels), preserve_index=True)
    more = json.loads(column.schema.metadata[b"pandas"])
    about |= {"index_columns": more["index_columns"], "columns": about["columns"] + more["columns"]}
    metadata = {**schema.metadata, b"pandas": json.dumps(about).encode()}
    return column, schema.append(column.schema.field(0)).with_metadata(metadata)


def _are_same(table: pa.Table, again: pa.Table, rows: int = 65_536) -> bool:
    """Tell whether values are the same, or as Python prints them, some ``rows`` at a time: NaN is
    not equal to itself."""
    return len(table) == len(again) and all(
        column.equals(other)
        or all(
            repr(column.slice(at, rows).to_pylist()) == repr(other.slice(at, rows).to_pylist())
            for at in range(0, len(column), rows)
        )
        for column, other in zip(table.columns, again.columns, strict=True)
    )


def _write(source: Reader, schema: pa.Schema, sink: Any, tables: Iterable[pa.Table]) -> None:
    """Write tables with the settings of a file; of columns, those of the first row group. Arrow is
    written without compression, which the library does not tell of a file."""
    make = _parquet_writer if source.is_parquet else _arrow_writer
    with make(source, schema, sink) as writer:
        for table in tables:
            writer.write_table(table, len(table))


def _arrow_writer(source: Reader, schema: pa.Schema, sink: Any) -> Any:
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
