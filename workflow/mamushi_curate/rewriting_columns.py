"""A Parquet file, Arrow stream or Arrow file written again without some of its rows.

Which rows go is decided first, from the columns that this needs. What stays is written with the
schema, metadata and settings that it had, a row group or record batch at a time, and read again:
every value has to be the one that was read. What the library would write otherwise is refused.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from mamushi.data import cutting
from mamushi.data.columnar import Reader, column_names, open_reader, values
from mamushi.data.lines import check_columns, shown_name
from mamushi.data.opening import open_binary
from mamushi.errors import UserError
from mamushi_curate.matching import RowRemoval
from mamushi_curate.table_settings import meanings, opened_writer

SLICE = 65_536
"""Rows that are compared as Python prints them, at a time: NaN is not equal to itself."""


class Decision(NamedTuple):
    """What becomes of the rows of a row group or record batch."""

    stays: pa.BooleanArray
    cuts: dict[int, set[int]]
    """Row -> places in its text, or conversation, that are cut out."""


def write_columns(
    path: Path, out: Path, removal: RowRemoval, digests: dict[str, str]
) -> tuple[int, str]:
    """Write ``path`` to ``out`` without what ``removal`` takes; ``digests`` gets what was read.
    Return the number of rows that were written, and the SHA-256 of the file. Raises ``UserError``
    for what cannot be read, and for what would not be the same."""
    with open_binary(path, digests) as handle:
        source = open_reader(path, handle)
        check_columns(path, column_names(source.schema), removal.columns)
        decisions = [*_decide(source, removal)]
        labels, schema = _pandas_labels(source.schema, decisions)

        def remaining(int96: str = "ns") -> Iterator[tuple[pa.Table, Any]]:
            row = 0
            blocks = open_reader(path, handle, int96).blocks()
            for (table, about), decision in zip(blocks, decisions, strict=True):
                if labels is not None:
                    numbers = pa.array(labels[row : row + len(table)], pa.int64())
                    table = table.append_column(schema.field(len(schema) - 1), numbers)
                row += len(table)
                table = table.replace_schema_metadata(schema.metadata)
                table = cutting.cut_column(table, removal.text or "", decision.cuts)
                if len(table := _filter(table, decision.stays, removal.columns)):
                    yield table, about

        with out.open("wb") as sink, opened_writer(path, handle, schema, sink) as write:
            for table, about in remaining():
                write(table, about)
        with out.open("rb") as written:
            result = open_reader(path, written)
            if not result.schema.equals(schema, check_metadata=True):
                raise _refusal(path, "its schema would change")
            types, types_again = meanings(source), meanings(result)
            for name in types:
                if types[name] != types_again.get(name):
                    raise _refusal(path, f"column {name!r} would lose its type, {types[name]}")
            # INT96 beyond nanoseconds is read wrong in the same way both times; in "us" it is not.
            for unit in ("ns", "us") if "INT96" in types.values() else ("ns",):
                pairs = itertools.zip_longest(
                    remaining(unit), open_reader(path, written, unit).blocks()
                )
                for block, block_again in pairs:
                    if block is None or block_again is None or block[1] != block_again[1]:
                        raise _refusal(path, "its row groups or batches would change")
                    for name in block[0].column_names:
                        if not _is_same(block[0][name], block_again[0][name]):
                            raise _refusal(path, f"column {name!r} would not be the same")
            written.seek(0)
            digest = hashlib.file_digest(written, "sha256").hexdigest()
        return sum(decision.stays.true_count for decision in decisions), digest


def _refusal(path: Path, reason: str) -> UserError:
    do = "leave that column out, or write it as numbers or text"
    return UserError(f"cannot be written again as it is ({reason})", where=path, do=do)


def _decide(source: Reader, removal: RowRemoval) -> Iterator[Decision]:
    file, row = shown_name(source.path), 0
    for table, _ in source.blocks([*dict.fromkeys(removal.columns)]):
        cells = {name: values(table[name], name, source.path) for name in table.column_names}
        rows = zip(*cells.values(), strict=True) if cells else itertools.repeat((), len(table))
        places = [
            removal.of(dict(zip(cells, row_cells, strict=True)), f"{file}, row {number}")
            for number, row_cells in enumerate(rows, row + 1)
        ]
        row += len(table)
        stays = pa.array([gone is not None for gone in places], pa.bool_())
        yield Decision(stays, {at: gone for at, gone in enumerate(places) if gone})


def _filter(table: pa.Table, stays: pa.BooleanArray, read: list[str]) -> pa.Table:
    """Return the rows that stay. What the library cannot filter is made anew, and so are types that
    would keep the bytes of rows that go: views, and dictionaries of the texts and ids."""
    if stays.false_count == 0:
        return table
    columns, outer = [], {*read, *(name.partition(".")[0] for name in read)}
    for name, column in zip(table.column_names, table.columns, strict=True):
        is_listed = name in outer and "dictionary" in str(column.type)
        if is_listed or re.search("_view|run_end_encoded", str(column.type)):
            staying = itertools.compress(column.to_pylist(), stays.to_pylist())
            columns.append(pa.array([*staying], column.type))
        else:
            columns.append(column.filter(stays))
    return pa.Table.from_arrays(columns, schema=table.schema)


def _pandas_labels(schema: pa.Schema, decisions: list[Decision]) -> tuple[range | None, pa.Schema]:
    """Return the range that labels the rows of a pandas table of which rows go, and the schema with
    a column for it, as pandas has it of a range with gaps; None where rows count from 0."""
    about = json.loads((schema.metadata or {}).get(b"pandas", "{}"))
    index = next(iter(about.get("index_columns", ())), None)
    if not isinstance(index, dict) or not any(each.stays.false_count for each in decisions):
        return None, schema
    labels = range(index["start"], index["stop"], index["step"])
    count = sum(len(decision.stays) for decision in decisions)
    if len(labels) != count or (index["name"] is None and labels == range(count)):
        return None, schema
    name = index["name"] if index["name"] not in (None, *schema.names) else "__index_level_0__"
    column = {"name": index["name"], "field_name": name, "metadata": None}
    column |= {"pandas_type": "int64", "numpy_type": "int64"}
    about |= {"index_columns": [name], "columns": [*about["columns"], column]}
    metadata = {**schema.metadata, b"pandas": json.dumps(about).encode()}
    return labels, schema.append(pa.field(name, pa.int64())).with_metadata(metadata)


def _is_same(column: pa.ChunkedArray, again: pa.ChunkedArray) -> bool:
    if column.type != again.type or len(column) != len(again):
        return False
    return column.equals(again) or all(
        repr(column.slice(at, SLICE).to_pylist()) == repr(again.slice(at, SLICE).to_pylist())
        for at in range(0, len(column), SLICE)
    )
