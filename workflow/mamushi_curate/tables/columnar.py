"""Parquet files, Arrow streams and Arrow files, opened once and read a piece at a time; and the
types of columns."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mamushi.errors import UserError
from mamushi.io import tabular
from mamushi_curate.tables.lines import check_columns
from mamushi_curate.tables.opening import open_binary

ARROW_FILE = b"ARROW1"


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
        is_file, batches = hasattr(self.source, "get_batch"), self.source
        if is_file:
            batches = map(self.source.get_batch, range(self.source.num_record_batches))
        for batch in batches:
            # The library takes on trust where each value begins and ends.
            batch.validate(full=True)
            yield select(pa.Table.from_batches([batch]), names)


def column_names(fields: Iterable[Any], outer: str = "") -> list[str]:
    """Return the names of columns, and behind them of those within others, as ``post.body``."""
    names, inner = [f"{outer}{field.name}" for field in fields], list[str]()
    for name, field in zip(names, fields, strict=True):
        if str(field.type).startswith("struct"):
            inner += column_names(field.type, f"{name}.")
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


@contextlib.contextmanager
def opened_columns(
    path: Path, digests: dict[str, str] | None = None
) -> Iterator[tuple[Any, Callable[[list[str] | None], Iterator[Any]]]]:
    """Open a Parquet file, an Arrow file or an Arrow stream: its schema, and a function that reads
    its row groups or record batches one by one as tables, with some columns or all (None).

    Raises ``UserError`` for what cannot be read, also while it is read; ``digests`` as of
    ``opening.open_binary``.
    """
    with library_errors(path), open_binary(path, digests) as handle:
        reader = open_reader(path, handle)
        yield reader.schema, reader.blocks


@contextlib.contextmanager
def library_errors(path: Path) -> Iterator[None]:
    """Turn what the library says of a file into a ``UserError``."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # The file system's, perhaps of what is written meanwhile.
        kind = "a Parquet file" if tabular.format_of(path) == "parquet" else "an Arrow file"
        problem = f"cannot be read as {kind} ({error})"
        raise UserError(problem, where=path, do="name it by what it is, or make it again") from None


def column_of(cells: Any, *, typed: bool) -> Any:
    """Return cells of a column as Arrow has them. Where they are not ``typed``, as in CSV, texts
    become booleans or numbers if all that are not empty can; whole numbers beyond 64 bits stay
    texts. Raises ``pa.ArrowException`` or ``OverflowError`` for cells of several types."""
    column = cells.arrow() if hasattr(cells, "arrow") else pa.chunked_array([pa.array(cells)])
    if typed:
        # Arrow compares no numbers of 16 bits; as decimals they are what was written.
        return pa.chunked_array([[*cells]]) if pa.types.is_float16(column.type) else column
    text = pc.utf8_trim_whitespace(filled(column))
    if pc.all(pc.is_in(pc.utf8_lower(text), pa.array(["true", "false", None]))).as_py():
        return pc.equal(pc.utf8_lower(text), "true")
    is_long = pc.any(pc.match_substring_regex(text, r"^[+-]?\d{16,}$")).as_py()
    for kind in (pa.int64(), pa.int64() if is_long else pa.float64()):
        with contextlib.suppress(pa.ArrowException):
            return text.cast(kind)
    return column


def filled(column: Any) -> Any:
    """Return a column in which texts of white space are null: text formats have no other way to say
    that a cell is empty."""
    if not pa.types.is_string(column.type):
        return column
    empty = pc.equal(pc.utf8_trim_whitespace(column), "")
    return pc.if_else(empty, pa.scalar(None, pa.string()), column)
