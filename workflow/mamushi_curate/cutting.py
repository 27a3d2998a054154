"""Characters cut out of a text of a row: the row is written again, with all other values."""

import csv
import io
import json
from collections.abc import Container, Mapping

import pyarrow as pa

from mamushi_curate.tables.lines import BOM, Dialect


def without_characters(text: str, removed: Container[int]) -> str:
    """Return a text without the characters at some places."""
    return "".join(character for at, character in enumerate(text) if at not in removed)


def cut_column(table: pa.Table, column: str, cuts: Mapping[int, Container[int]]) -> pa.Table:
    """Return a table with characters cut out of some rows' texts in a column."""
    if not cuts:
        return table
    at = table.column_names.index(column)
    field, cells = table.schema.field(at), table.column(at).to_pylist()
    left = [
        without_characters(cell, cuts[row]) if row in cuts else cell
        for row, cell in enumerate(cells)
    ]
    return table.set_column(at, field, pa.array(left, field.type))


def cut_line(
    raw: bytes, removed: Container[int], form: str, header: bytes, dialect: Dialect, column: str
) -> bytes:
    """Return a line of a file of this format without characters of the text in a column."""
    row = raw.decode("utf-8", "surrogateescape")
    if form == "txt":
        row = without_characters(row, removed)
    elif dialect.separator is None:
        row = cut_object(row, column, removed)
    else:
        row = cut_row(row, header, dialect, column, removed)
    return row.encode("utf-8", "surrogateescape")


def cut_object(written: str, column: str, removed: Container[int]) -> str:
    """Return an object of JSON, as it is written, with characters of one of its texts cut out."""
    start = written.index("{")
    row, stop = json.JSONDecoder().raw_decode(written, start)
    *outer, name = [column] if column in row else column.split(".")
    inner = row
    for key in outer:
        inner = inner[key]
    inner[name] = without_characters(inner[name], removed)
    return written[:start] + json.dumps(row, ensure_ascii=written.isascii()) + written[stop:]


def cut_row(row: str, header: bytes, dialect: Dialect, column: str, removed: Container[int]) -> str:
    """Return a row of CSV, of a table with a ``header``, without characters of one of its cells."""
    lines = (header.decode("utf-8", "surrogateescape").lstrip(BOM), row.lstrip(BOM))
    names, cells = (next(dialect.cells(io.StringIO(line, newline=""))) for line in lines)
    at, end = names.index(column), row[len(row.rstrip("\r\n")) :]
    cells[at] = without_characters(cells[at], removed)
    separator = dialect.separator or ","
    if not dialect.quote:
        return separator.join(cells) + end
    sink = io.StringIO(newline="")
    csv.writer(sink, delimiter=separator, lineterminator=end).writerow(cells)
    return sink.getvalue()
