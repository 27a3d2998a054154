"""Parquet and Arrow written again without some of their rows: with schema and metadata, a row group
or record batch at a time. All is read again, and refused unless every value is the same."""

import itertools
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mamushi.errors import UserError
from mamushi.io.files import sha256
from mamushi_curate.removal import STAYS, Verdict, Verdicts
from mamushi_curate.tables.readers import Reader, open_reader


def write_columns(
    path: Path, file: IO[bytes], verdicts: Verdicts, out: Path, columns: list[str]
) -> str:
    """Write the rows of ``path`` that stay to ``out``; ``columns`` have the ids and texts. Return
    the SHA-256 of what was written. Raises ``UserError`` for what would not be the same."""
    changes = {row: verdict for row, (_, verdict) in enumerate(verdicts) if verdict is not STAYS}
    source, blocks = open_reader(path, file), open_reader(path, file).blocks([])
    labels, schema = _pandas_labels(source.schema, sum(map(len, blocks)))

    def remaining_tables(int96: str = "ns") -> Iterator[pa.Table]:
        start = 0
        for table in open_reader(path, file, int96).blocks():
            rows = range(start, start + len(table))
            for name in labels.column_names:
                table = table.append_column(name, labels[name].slice(start, len(table)))
            table, start = table.replace_schema_metadata(schema.metadata), rows.stop
            judged = {at: changes[row] for at, row in enumerate(rows) if row in changes}
            table = _with_cells(table, judged)
            if len(table := _filter(table, judged, columns)):
                yield table

    with out.open("wb+") as sink:
        with _writer(source, schema, sink) as writer:
            for table in remaining_tables():
                writer.write_table(table, len(table))
        again = open_reader(path, sink)
        lost = _types(source) - _types(again)
        is_same = again.schema.equals(schema, check_metadata=True)
        # INT96 beyond nanoseconds is read wrong in the same way both times; in "us" it is not.
        for unit in ("ns", "us") if "int96" in str(source.source.schema) else ("ns",):
            pairs = zip(remaining_tables(unit), open_reader(path, sink, unit).blocks(), strict=True)
            is_same = is_same and all(itertools.starmap(_are_same, pairs))
    if lost or not is_same:
        problem = f"cannot be written again as it is: {min(lost, default='its values')}"
        raise UserError(problem, where=path, do="leave out what is not numbers or text")
    return sha256(out)


def _with_cells(table: pa.Table, verdicts: Mapping[int, Verdict]) -> pa.Table:
    """Return a table with the cells that the verdicts of its rows have anew."""
    for column in {column for verdict in verdicts.values() for column in verdict.cells}:
        at = table.column_names.index(column)
        field, cells = table.schema.field(at), table.column(at).to_pylist()
        for row, verdict in verdicts.items():
            cells[row] = verdict.cells.get(column, cells[row])
        table = table.set_column(at, field, pa.array(cells, field.type))
    return table


def _pandas_labels(schema: pa.Schema, rows: int) -> tuple[pa.Table, pa.Schema]:
    """Return a range by which pandas labels the rows as a column, none where they count from 0, and
    the schema with it."""
    about = schema.pandas_metadata or {}
    index = [*about.get("index_columns", ()), None][0]
    labels = isinstance(index, dict) and range(index["start"], index["stop"], index["step"])
    if not labels or len(labels) != rows or (labels, index["name"]) == (range(rows), None):
        return pa.table({}), schema
    import pandas as pd

    frame = pd.DataFrame(index=pd.RangeIndex(labels, name=index["name"]))
    column = pa.Table.from_pandas(frame, preserve_index=True)
    more = column.schema.pandas_metadata
    about |= {"index_columns": more["index_columns"], "columns": about["columns"] + more["columns"]}
    metadata = {**schema.metadata, b"pandas": json.dumps(about).encode()}
    return column, schema.append(column.schema.field(0)).with_metadata(metadata)


def _filter(table: pa.Table, verdicts: Mapping[int, Verdict], columns: list[str]) -> pa.Table:
    """Return the rows that remain. Types that would keep the bytes of rows that go are made anew:
    views, runs, and dictionaries of the texts and ids."""
    stays = np.ones(len(table), dtype=np.bool_)
    stays[[row for row, verdict in verdicts.items() if not verdict.stays]] = False
    outer = {*columns, *(name.partition(".")[0] for name in columns)}
    filtered = [
        pa.array([*itertools.compress(column.to_pylist(), stays)], column.type)
        if re.search("_view|run_end" + "|dictionary" * (name in outer), str(column.type))
        else column.filter(pa.array(stays))
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]
    return pa.Table.from_arrays(filtered, schema=table.schema)


def _writer(source: Reader, schema: pa.Schema, sink: Any) -> Any:
    """Return the writer, with the settings of columns of the first row group; of Arrow without
    compression, which the library does not tell of a file."""
    file = source.source
    if not source.is_parquet:
        make = pa.ipc.new_file if hasattr(file, "get_batch") else pa.ipc.new_stream
        return make(sink, schema, options=pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True))
    group = file.metadata.row_group(0) if file.num_row_groups else None
    # Of a damaged footer this is an error, and what comes next the end of the process.
    next(file.iter_batches(1, row_groups=[0] if group else []), None)
    chunks = [group.column(at) for at in range(group.num_columns)] if group else []
    codecs = {c.path_in_schema: c.compression.replace("UNCOMPRESSED", "NONE") for c in chunks}
    return pq.ParquetWriter(
        sink,
        schema,
        compression=codecs,
        use_dictionary=[c.path_in_schema for c in chunks if c.has_dictionary_page] or False,
        write_statistics=[c.path_in_schema for c in chunks if c.is_stats_set] or False,
        write_page_index=any(c.has_offset_index for c in chunks),
        sorting_columns=(group and group.sorting_columns) or None,
        use_deprecated_int96_timestamps=any(c.physical_type == "INT96" for c in chunks),
        use_compliant_nested_type=any(".list.element" in c.path_in_schema for c in chunks),
    )


def _types(reader: Reader) -> set[str]:
    """Return the columns of Parquet with types that others see and Arrow may not, as ENUM."""
    schema = reader.source.schema
    leaves = map(schema.column, range(len(schema))) if reader.is_parquet else ()
    types = {leaf.path: str(leaf.logical_type).partition("(")[0] for leaf in leaves}
    return {f"column {at!r} as {of}" for at, of in types.items() if of not in ("None", "Int")}


def _are_same(table: pa.Table, again: pa.Table) -> bool:
    """Tell whether values are the same, or as Python prints them: NaN is not equal to itself."""
    return len(table) == len(again) and all(
        column.equals(other) or repr(column.to_pylist()) == repr(other.to_pylist())
        for column, other in zip(table.columns, again.columns, strict=True)
    )
