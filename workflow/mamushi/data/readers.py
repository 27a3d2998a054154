"""Tables from the files that people have: CSV, TSV, JSON Lines (each plain or packed), Parquet and
Arrow; one file or a folder of shards. Every problem is reported with the file and the row, which
counts from 1 without the header; of CSV also with the line on which the row ends.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

from mamushi.data.columnar import column_names, library_errors, opened_columns, values
from mamushi.data.compact import Compact, plain
from mamushi.data.lines import SEPARATORS, USUAL, Dialect, check_columns, records, shown_name
from mamushi.errors import UserError
from mamushi.io import tabular
from mamushi.running.progress import Progress

COLUMNAR = ("parquet", "arrow")
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
    numbers: Sequence[int] = ()
    """Of each row in all files, from 1; none where all were read."""
    digests: dict[str, str] = field(default_factory=dict, compare=False)
    """Of each file by its name: the SHA-256 of the bytes from which the rows were read."""


TableRow = tuple[int, str, Mapping[str, Any]]
"""The number of a row in all files, from 1, its place and its cells."""


def read_file_columns(
    path: str | Path, needed: Sequence[str], dialect: Dialect = USUAL
) -> FileTable:
    """Read the columns ``needed`` of a table, whose format is known by the ending of its files.

    Raises ``UserError`` for a missing or damaged file and one that is written meanwhile, a missing
    column, a row of the wrong length, a quoted cell that holds whole rows, and text that is not
    UTF-8.
    """
    path = Path(path)
    files = tabular.find(path)
    kind = tabular.format_of(files[0])
    columns = {name: Compact() for name in needed}
    names: dict[str, None] = {}
    places, digests = Compact(), dict[str, str]()
    with Progress(len(files), "read", "file") as progress:
        for file in files:
            if tabular.format_of(file) in COLUMNAR:
                names.update(_add_columns(file, columns, places, digests))
                continue
            for place, cells in table_rows(file, needed, dialect, digests=digests):
                names.update(dict.fromkeys(cells))
                places.append(place)
                for name, column in columns.items():
                    column.append(cells.get(name))
            if len(files) > 1:
                progress.advance()
    if not places:
        raise UserError("no rows", where=path, do="give a file with data")
    # Of JSON Lines: a key may come up in a later row for the first time.
    check_columns(path, list(names), needed)
    typed = kind not in SEPARATORS
    return FileTable(shown_name(path), columns, places, typed=typed, digests=digests)


def _add_columns(
    path: Path, columns: Mapping[str, Compact], places: Compact, digests: dict[str, str]
) -> dict[str, None]:
    """Add the rows of a file of Parquet or Arrow to its columns, and their places. Return the names
    of all columns that it has."""
    number = 0
    with opened_columns(path, digests) as (schema, tables):
        check_columns(path, column_names(schema), [*columns])
        for table in tables([*columns]):
            with library_errors(path):
                table.validate(full=True)
                for name, column in columns.items():
                    for piece in table[name].chunks:
                        column.add(plain(piece))
            for _ in range(table.num_rows):
                places.append(f"{shown_name(path)}, row {(number := number + 1)}")
        return dict.fromkeys(column_names(schema))


def numbered_rows(
    files: Sequence[Path],
    needed: Sequence[str],
    digests: dict[str, str],
    dialect: Dialect = USUAL,
) -> Iterator[TableRow]:
    """Iterate over the rows of several files, as ``table_rows``."""
    every = (row for file in files for row in table_rows(file, needed, dialect, digests=digests))
    for number, (place, cells) in enumerate(every, 1):
        yield number, place, cells


def table_rows(
    path: Path,
    needed: Sequence[str],
    dialect: Dialect = USUAL,
    *,
    digests: dict[str, str] | None = None,
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Iterate over the place and the cells of every row of one file, by column: the ``needed`` ones
    of Parquet and Arrow, all of other formats. With ``digests``, the SHA-256 of what was read is
    noted there under the file's name once all was. Raises ``UserError`` as
    ``read_file_columns``."""
    if tabular.format_of(path) not in COLUMNAR:
        for record in records(path, needed, dialect=dialect, digests=digests):
            if record.cells is not None and not record.is_header:
                yield record.place, record.cells
        return
    number, file = 0, shown_name(path)
    with opened_columns(path, digests) as (schema, tables):
        check_columns(path, column_names(schema), needed)
        for table in tables(list(dict.fromkeys(needed))):
            if not table.num_columns:
                for _ in range(table.num_rows):
                    number += 1
                    yield f"{file}, row {number}", {}
                continue
            cells = {name: values(table[name], name, path) for name in table.column_names}
            for row in zip(*cells.values(), strict=True):
                number += 1
                yield f"{file}, row {number}", dict(zip(cells, row, strict=True))


def columns(path: str | Path, dialect: Dialect = USUAL) -> list[str]:
    """Return the names of all columns of a table; of JSON Lines those of the first rows."""
    file = tabular.find(path)[0]
    if tabular.format_of(file) in COLUMNAR:
        with opened_columns(file) as (schema, _):
            return column_names(schema)
    names: dict[str, None] = {}
    for record in islice((row for row in records(file, (), dialect=dialect) if row.cells), FIRST):
        names |= dict.fromkeys(record.cells or ())
        if record.is_header:
            break
    return list(names)


def check_header(path: str | Path, needed: Sequence[str], dialect: Dialect = USUAL) -> None:
    """Raise ``UserError`` for a needed column that CSV or TSV lacks. Other formats are not opened:
    their columns are in later rows, or take a library that is slow to load."""
    file = tabular.find(path)[0]
    if tabular.format_of(file) in SEPARATORS and file.suffix.lower() != ".zst":
        next(records(file, needed, dialect=dialect), None)


def name_of(value: Any) -> str | None:
    """Return a cell as a name: ``1``, ``1.0`` and ``"1"`` agree, and so do ``true`` and ``"true"``.

    None for what is missing: null, NaN, infinite, or empty. Text stays as it is.
    """
    if value is None or value == "":
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return str(int(value)) if value.is_integer() else repr(value)
    if isinstance(value, Decimal):
        if not value.is_finite():
            return None
        return str(int(value)) if value == value.to_integral_value() else str(value)
    return str(value)


def name_at(value: Any, column: str, place: object) -> str | None:
    """Return a cell as a name, as ``name_of``. Raises ``UserError`` for one of several values, and
    of bytes, which are no text."""
    if isinstance(value, list | dict | bytes):
        problem = f"column {column!r} is {value!r:.60}, not one value"
        raise UserError(problem, where=place, do="name a column of numbers or text")
    return name_of(value)
