"""Tables from files: one, or a folder of shards. Every problem is reported with the file and the
row, which counts from 1 without the header; of CSV also with the line on which the row ends."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, islice, repeat
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from mamushi.data.cells import Cells, mapped_table, plain_array, to_cells
from mamushi.errors import UserError
from mamushi.io import tabular
from mamushi.io.domains import name_of
from mamushi_curate.tables.lines import (
    SEPARATORS,
    USUAL,
    Dialect,
    Record,
    check_columns,
    open_binary,
    records,
    shown_name,
)

COLUMNAR = ("parquet", "arrow")
ARROW_FILE = b"ARROW1"
FIRST = 100
"""Rows of JSON Lines whose keys are taken for the columns."""


@dataclass(frozen=True)
class FileTable:
    """Columns of a file by name, and the place of each row for messages."""

    file: str
    columns: Mapping[str, Sequence[Any]]
    places: Sequence[str]
    typed: bool
    """Whether values have types of their own; those of CSV and TSV are all text."""
    digests: dict[str, str] = field(default_factory=dict, compare=False)
    """Of each file by its name: the SHA-256 of the bytes from which the rows were read."""


def read_file_columns(
    path: str | Path, needed: Sequence[str], dialect: Dialect = USUAL
) -> FileTable:
    """Read the columns ``needed`` of a table. Raises ``UserError`` for a file that is missing or
    written meanwhile, a missing column, and a row that is none."""
    path, needed, digests = Path(path), [*dict.fromkeys(needed)], dict[str, str]()
    files = tabular.find(path)
    form = tabular.format_of(files[0]) or ""
    if form in COLUMNAR:
        tables = [_mapped_file(file, needed, digests) for file in files]
        joined = pa.concat_tables(tables, promote_options="permissive")
        places, *columns = map(Cells, joined.columns)
    else:
        places, *columns = _stored_columns(path, needed, digests, dialect, "json" in form)
    if not places:
        raise UserError("no rows", where=path, do="give a file with data")
    by_name = dict(zip(needed, columns, strict=True))
    typed = form not in SEPARATORS
    return FileTable(shown_name(path), by_name, places, typed=typed, digests=digests)


def _mapped_file(file: Path, needed: Sequence[str], digests: dict[str, str]) -> pa.Table:
    """Return the ``needed`` columns of Parquet or Arrow behind the places of their rows."""
    name, numbers = shown_name(file), count(1)
    # Longer than each of the names, and so none of them.
    names = ["_".join(["", *needed, ""]), *needed]

    def batches(reader: Reader) -> Iterator[pa.RecordBatch]:
        for table in reader.blocks([*needed]):
            table.validate(full=True)
            for batch in table.to_batches():
                places = [f"{name}, row {next(numbers)}" for _ in range(len(batch))]
                columns = [pa.array(places, pa.string()), *map(plain_array, batch.columns)]
                yield pa.record_batch(columns, schema)

    with open_binary(file, digests) as handle:
        reader = open_reader(file, handle)
        check_columns(file, column_names(reader.schema), needed)
        empty = select(reader.schema.empty_table(), [*needed])
        types = [plain_array(column.combine_chunks()).type for column in empty.columns]
        schema = pa.schema(zip(names, [pa.string(), *types], strict=True))
        return mapped_table(schema, batches(reader))


def _stored_columns(
    path: Path, needed: Sequence[str], digests: dict[str, str], dialect: Dialect, is_json: bool
) -> list[Cells]:
    """Return the places of all rows of another format, and the ``needed`` columns."""
    names = dict[str, None]()

    def rows() -> Iterator[tuple[str, ...]]:
        for place, cells in table_rows(path, needed, dialect, digests=digests):
            names.update(dict.fromkeys(cells))
            values = (cells.get(name) for name in needed)
            yield place, *(map(json.dumps, values) if is_json else values)

    places, *columns = to_cells(rows(), 1 + len(needed))
    if places:
        # Of JSON Lines: a key may come up in a later row for the first time.
        check_columns(path, list(names), needed)
    return [places, *(Cells(column.column, is_json) for column in columns)]


def table_rows(
    path: str | Path,
    needed: Sequence[str],
    dialect: Dialect = USUAL,
    *,
    digests: dict[str, str] | None = None,
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Iterate over the place and the cells of every row of a table, as of ``read_records``. With
    ``digests``, the SHA-256 of each file that was read is noted there."""
    for path_of_file in tabular.find(path):
        with open_binary(path_of_file, digests) as file:
            for record in read_records(path_of_file, file, needed, dialect):
                if record.cells is not None and not record.is_header:
                    yield record.place, record.cells


def read_records(
    path: Path, file: IO[bytes], needed: Sequence[str], dialect: Dialect, *, strict: bool = True
) -> Iterator[Record]:
    """Iterate over the records of a file that is open, with their cells by column: the ``needed``
    ones of Parquet and Arrow, all of other formats. ``strict`` as of ``records``. Raises
    ``UserError`` as ``read_file_columns``."""
    if tabular.format_of(path) in COLUMNAR:
        blocks = open_reader(path, file).blocks([*dict.fromkeys(needed)])
        yield from rows_of(blocks, shown_name(path))
    else:
        yield from records(path, file, needed, dialect, strict=strict)


def rows_of(tables: Iterable[pa.Table], name: str) -> Iterator[Record]:
    """Iterate over the rows of the tables that a file of this name is made of."""
    numbers = count(1)
    for table in tables:
        cells = [[*Cells(column)] for column in table.columns]
        for row in zip(*cells, strict=True) if cells else repeat((), len(table)):
            by_name = dict(zip(table.column_names, row, strict=True))
            yield Record(b"", by_name, f"{name}, row {next(numbers)}")


def columns(path: str | Path, dialect: Dialect = USUAL) -> list[str]:
    """Return the names of all columns of a table; of JSON Lines those of the first rows."""
    first, names = tabular.find(path)[0], dict[str, None]()
    with open_binary(first) as file:
        if tabular.format_of(first) in COLUMNAR:
            return column_names(open_reader(first, file).schema)
        rows = (record for record in records(first, file, (), dialect) if record.cells)
        for record in islice(rows, FIRST):
            names |= dict.fromkeys(record.cells or ())
            if record.is_header:
                break
    return list(names)


def name_at(value: Any, column: str, place: object) -> str | None:
    """Return a cell's value as ``name_of`` writes it. Raises ``UserError`` for bytes and for a cell
    of several values."""
    if isinstance(value, list | dict | bytes):
        problem = f"column {column!r} is {value!r:.60}, not one value"
        raise UserError(problem, where=place, do="name a column of numbers or text")
    return name_of(value)


# Parquet and Arrow --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reader:
    """A Parquet file, Arrow file or Arrow stream that is open; a stream is read once."""

    path: Path
    source: Any

    @property
    def schema(self) -> Any:
        """Return the schema as Arrow has it."""
        return self.source.schema_arrow if self.is_parquet else self.source.schema

    @property
    def is_parquet(self) -> bool:
        """Return whether its blocks are row groups; of Arrow they are record batches."""
        return tabular.format_of(self.path) == "parquet"

    def blocks(self, names: list[str] | None = None) -> Iterator[Any]:
        """Iterate over its blocks as tables, with some columns or all. Raises ``UserError`` for a
        column that is not there."""
        check_columns(self.path, column_names(self.schema), names or ())
        if self.is_parquet:
            for number in range(self.source.num_row_groups):
                yield select(self.source.read_row_group(number, columns=names), names)
            return
        batches = self.source
        if hasattr(batches, "get_batch"):
            batches = map(batches.get_batch, range(batches.num_record_batches))
        for batch in batches:
            # The library takes on trust where each value begins and ends.
            batch.validate(full=True)
            yield select(pa.Table.from_batches([batch]), names)


def column_names(fields: Iterable[Any], outer: str = "") -> list[str]:
    """Return the names of columns, and behind them of those within others, as ``post.body``."""
    names, inner = [f"{outer}{column.name}" for column in fields], list[str]()
    for name, column in zip(names, fields, strict=True):
        if str(column.type).startswith("struct"):
            inner += column_names(column.type, f"{name}.")
    return [*names, *(name for name in inner if name not in names)]


def select(table: Any, names: list[str] | None) -> Any:
    """Return a table with some of its columns, or all (None)."""
    inner = table
    while lacking := {*(names or ())} - {*table.column_names}:
        inner = inner.flatten()
        for name in lacking & {*inner.column_names}:
            table = table.append_column(name, inner[name])
    return table if names is None else table.select(names)


def open_reader(path: Path, handle: Any, int96: str = "ns") -> Reader:
    """Return the reader of an open file, whatever was read of it; ``int96``: the unit in which old
    times of Parquet are read."""
    handle.seek(0)
    is_arrow_file = handle.read(len(ARROW_FILE)) == ARROW_FILE
    handle.seek(0)
    if tabular.format_of(path) == "parquet":
        # A file by itself: the names of folders above it are no columns.
        return Reader(path, pq.ParquetFile(handle, coerce_int96_timestamp_unit=int96))
    return Reader(path, (pa.ipc.open_file if is_arrow_file else pa.ipc.open_stream)(handle))
