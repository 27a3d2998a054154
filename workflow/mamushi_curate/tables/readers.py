"""Tables from the files that people have: CSV, TSV, JSON Lines (each plain or packed), Parquet and
Arrow; one file or a folder of shards. Every problem is reported with the file and the row, which
counts from 1 without the header; of CSV also with the line on which the row ends.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, islice, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mamushi.errors import UserError
from mamushi.io import tabular
from mamushi.io.domains import name_of
from mamushi_curate.tables.lines import (
    SEPARATORS,
    USUAL,
    Dialect,
    check_columns,
    records,
    shown_name,
)

if TYPE_CHECKING:
    from mamushi.data.cells import Cells

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
    digests: dict[str, str] = field(default_factory=dict, compare=False)
    """Of each file by its name: the SHA-256 of the bytes from which the rows were read."""


TableRow = tuple[str, Mapping[str, Any]]
"""The place of a row and its cells."""


def read_file_columns(
    path: str | Path, needed: Sequence[str], dialect: Dialect = USUAL
) -> FileTable:
    """Read the columns ``needed`` of a table, whose format is known by the ending of its files.

    Raises ``UserError`` for a missing or damaged file and one that is written meanwhile, a missing
    column, a row of the wrong length, a quoted cell that holds whole rows, and text that is not
    UTF-8.
    """
    path, needed, digests = Path(path), [*dict.fromkeys(needed)], dict[str, str]()
    files = tabular.find(path)
    form = tabular.format_of(files[0]) or ""
    if form in COLUMNAR:
        places, *columns = _mapped_columns(files, needed, digests)
    else:
        is_json = "json" in form
        places, *columns = _stored_columns(path, needed, digests, dialect, is_json)
    if not places:
        raise UserError("no rows", where=path, do="give a file with data")
    by_name = dict(zip(needed, columns, strict=True))
    typed = form not in SEPARATORS
    return FileTable(shown_name(path), by_name, places, typed=typed, digests=digests)


def _mapped_columns(
    files: Sequence[Path], needed: Sequence[str], digests: dict[str, str]
) -> list[Cells]:
    """Return the places of all rows of Parquet or Arrow, and the ``needed`` columns."""
    import pyarrow as pa

    from mamushi.data.cells import Cells, mapped, plain
    from mamushi_curate.tables.columnar import column_names, opened_columns, select

    # Longer than each of the names, and so none of them.
    schemas, place = [], "_".join(["", *needed, ""])
    for file in files:
        with opened_columns(file) as (schema, _):
            check_columns(file, column_names(schema), needed)
            empty = select(schema.empty_table(), [*needed])
            types = [plain(column.combine_chunks()).type for column in empty.columns]
            schemas.append(pa.schema([(place, pa.string()), *zip(needed, types, strict=True)]))
    schema = pa.unify_schemas(schemas, promote_options="permissive")

    def tables() -> Iterator[pa.Table]:
        for file in files:
            name, numbers = shown_name(file), count(1)
            with opened_columns(file, digests) as (_, read):
                for table in read([*needed]):
                    table.validate(full=True)
                    for batch in table.to_batches():
                        places = [f"{name}, row {next(numbers)}" for _ in range(len(batch))]
                        columns = [pa.array(places, pa.string()), *map(plain, batch.columns)]
                        yield pa.table(columns, names=schema.names).cast(schema)

    return [Cells(column) for column in mapped(schema, tables()).columns]


def _stored_columns(
    path: Path, needed: Sequence[str], digests: dict[str, str], dialect: Dialect, is_json: bool
) -> list[Cells]:
    """Return the places of all rows of another format, and the ``needed`` columns."""
    from mamushi.data.cells import Cells, store

    names = dict[str, None]()

    def rows() -> Iterator[tuple[str, ...]]:
        for place, cells in table_rows(path, needed, dialect, digests=digests):
            names.update(dict.fromkeys(cells))
            values = (cells.get(name) for name in needed)
            yield place, *(map(json.dumps, values) if is_json else values)

    places, *columns = store(rows(), 1 + len(needed))
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
) -> Iterator[TableRow]:
    """Iterate over the place and the cells of every row of a table, by column: the ``needed`` ones
    of Parquet and Arrow, all of other formats. With ``digests``, the SHA-256 of each file that was
    read is noted there. Raises ``UserError`` as ``read_file_columns``."""
    for file in tabular.find(path):
        if tabular.format_of(file) in COLUMNAR:
            yield from _columnar_rows(file, needed, digests)
            continue
        for record in records(file, needed, dialect=dialect, digests=digests):
            if record.cells is not None and not record.is_header:
                yield record.place, record.cells


def _columnar_rows(
    path: Path, needed: Sequence[str], digests: dict[str, str] | None
) -> Iterator[TableRow]:
    from mamushi.data.cells import Cells
    from mamushi_curate.tables.columnar import opened_columns

    numbers, name = count(1), shown_name(path)
    with opened_columns(path, digests) as (_, tables):
        for table in tables(list(dict.fromkeys(needed))):
            cells = [[*Cells(column)] for column in table.columns]
            for row in zip(*cells, strict=True) if cells else repeat((), table.num_rows):
                place = f"{name}, row {next(numbers)}"
                yield place, dict(zip(table.column_names, row, strict=True))


def columns(path: str | Path, dialect: Dialect = USUAL) -> list[str]:
    """Return the names of all columns of a table; of JSON Lines those of the first rows."""
    file = tabular.find(path)[0]
    if tabular.format_of(file) in COLUMNAR:
        from mamushi_curate.tables.columnar import column_names, opened_columns

        with opened_columns(file) as (schema, _):
            return column_names(schema)
    names: dict[str, None] = {}
    for record in islice((row for row in records(file, (), dialect=dialect) if row.cells), FIRST):
        names |= dict.fromkeys(record.cells or ())
        if record.is_header:
            break
    return list(names)


def name_at(value: Any, column: str, place: object) -> str | None:
    """Return a cell as a name, as ``name_of``. Raises ``UserError`` for one of several values, and
    of bytes, which are no text."""
    if isinstance(value, list | dict | bytes):
        problem = f"column {column!r} is {value!r:.60}, not one value"
        raise UserError(problem, where=place, do="name a column of numbers or text")
    return name_of(value)
