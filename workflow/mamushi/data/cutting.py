"""Characters taken out of a text where it stands in a file: all other bytes stay."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Container, Iterator, Mapping
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import pyarrow as pa

PLAIN = re.compile(".", re.DOTALL)
"""A character as it is, as"""
ESCAPED = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|.", re.DOTALL
)
"""a string of JSON has it, and"""
DOUBLED = re.compile('""|.', re.DOTALL)
"""as a quoted cell of CSV has it."""
_SPACE = re.compile(r"[ \t\r\n]*")
BOM = "\ufeff"


def without_characters(text: str, gone: Container[int], character: re.Pattern[str] = PLAIN) -> str:
    """Return a text, as it is written, without the characters at some places in what it means."""
    characters = enumerate(match[0] for match in character.finditer(text))
    return "".join(written for at, written in characters if at not in gone)


def cut_column(table: pa.Table, column: str, cuts: Mapping[int, Container[int]]) -> pa.Table:
    """Return a table with characters cut out of some rows' texts in a column."""
    import pyarrow as pa

    if not cuts:
        return table
    at = table.column_names.index(column)
    field, cells = table.schema.field(at), table.column(at).to_pylist()
    left = [
        without_characters(cell, cuts[row]) if row in cuts else cell
        for row, cell in enumerate(cells)
    ]
    return table.set_column(at, field, pa.array(left, field.type))


def of_line(line: str, column: str, gone: Container[int]) -> str:
    """Return an object of JSON, a line, with characters of one of its strings cut out."""
    values = _values(line, line.index("{"))
    # Of a key that is there twice the last one counts.
    start, stop = [span for name, *span in values if name == column][-1]
    left = without_characters(line[start + 1 : stop - 1], gone, ESCAPED)
    return f'{line[:start]}"{left}"{line[stop:]}'


def _values(written: str, at: int) -> Iterator[tuple[str, int, int]]:
    """Iterate over the values of an object of JSON that begins at a place: the key, where the value
    begins, and what is behind it."""
    # Of what is passed over an integer may be longer than Python reads.
    decoder = json.JSONDecoder(parse_int=str)
    at += 1
    while written[at := behind(written, at)] != "}":
        name, at = decoder.raw_decode(written, at)
        start = at = behind(written, behind(written, at) + 1)
        _, at = decoder.raw_decode(written, at)
        yield name, start, at
        at = behind(written, at)
        at += written[at] == ","


def of_row(
    row: str, separator: str, place: int, gone: Container[int], *, quote: bool = True
) -> str:
    """Return a row of CSV with characters of its cell number ``place``, from 0, cut out. Without
    ``quote``, a `"` is a character as any other."""
    plain = f"[^{re.escape(separator)}\\r\\n]*"
    cell = re.compile(f'"(?:[^"]|"")*"|{plain}' if quote else plain)
    # A byte-order mark is no part of the first cell.
    start, stop = 0, len(row) - len(row.lstrip(BOM)) - 1
    for _ in range(place + 1):
        start = stop + 1
        stop = cell.match(row, start).end()  # type: ignore[union-attr]
    if quote and row.startswith('"', start):
        start, stop = start + 1, stop - 1
        left = without_characters(row[start:stop], gone, DOUBLED)
    else:
        left = without_characters(row[start:stop], gone)
        if quote and left.startswith('"'):
            # It would be read as a quote that opens the cell.
            left = '"{}"'.format(left.replace('"', '""'))
    return row[:start] + left + row[stop:]


def place_of(header: bytes, separator: str, column: str, *, quote: bool = True) -> int:
    """Return the number of a column, from 0, in a header of CSV."""
    text = header.decode("utf-8", "surrogateescape").lstrip(BOM)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator, quoting=quotes(quote))
    return next(rows).index(column)


def quotes(quote: bool) -> Literal[0, 3]:
    """Return how the parser of CSV takes a `"`: as the end of a cell, or as any other character."""
    return csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE


def behind(line: str, at: int) -> int:
    """Return where in JSON what is no space stands, from a place on."""
    match = _SPACE.match(line, at)
    return at if match is None else match.end()
