"""Records of CSV, TSV, JSON (objects a line, or in an array) and lines of text, plain or packed,
with their bytes."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import IO, Any, NamedTuple

from mamushi.data.cutting import BOM, behind, quotes
from mamushi.data.opening import open_unpacked
from mamushi.errors import UserError, lacks
from mamushi.io import tabular

SEPARATORS = {"csv": ",", "tsv": "\t"}
MARK = BOM.encode()
BLANK = b" \t\r\n\x0b\x0c" + MARK
"""Bytes of a line of JSON Lines in which nothing is."""
AS_PLAIN = ', or read " as any other character with --quote none'


class Record(NamedTuple):
    """A header, blank line or row of CSV, TSV or JSON Lines."""

    raw: bytes
    cells: dict[str, Any] | None
    """By column; None for a blank line."""
    place: str
    is_header: bool = False


def records(
    path: Path,
    needed: Sequence[str],
    *,
    strict: bool = True,
    quote: bool = True,
    digests: dict[str, str] | None = None,
) -> Iterator[Record]:
    """Iterate over each header, blank line and row of a file of CSV, TSV, JSON or text, packed or
    not.

    Their bytes, one after the other, are the file's. Without ``strict``, a row of CSV may hold
    bytes that are not UTF-8; without ``quote``, a `"` in it is a character as any other. Raises
    ``UserError`` as ``readers.read_file_columns``; ``digests`` as of ``open_unpacked``.
    """
    separator = SEPARATORS.get(tabular.format_of(path) or "")
    with open_unpacked(path, digests) as handle:
        if separator is None:
            yield from _rows(path, tabular.format_of(path), handle)
        else:
            yield from _Delimited(path, separator, needed, strict, quote).records(handle)


def shown_name(path: Path) -> str:
    """Return the name of a file for messages and tables: what is not UTF-8 in it is escaped."""
    return os.fsencode(path.name).decode("utf-8", "backslashreplace")


def check_columns(path: str | Path, names: list[str], needed: Sequence[str]) -> None:
    """Raise ``UserError`` that names the first needed column that is not there, or twice."""
    if needed and not names:
        raise UserError("is empty", where=path, do="give a file with a header and rows")
    for name in needed:
        if names.count(name) > 1:
            problem = f"column {name!r} is there {names.count(name)} times"
            raise UserError(problem, where=path, do="give every column a name of its own")
        if name not in names:
            raise UserError(f"no column {name!r}", where=path, do=lacks(name, names))


def check_text(value: str, place: str) -> None:
    """Raise ``UserError`` when ``value`` holds a code point that UTF-8 cannot express, or a NUL,
    which no text has in it that was written or read as it should be."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        half = f"\\u{ord(value[error.start]):04x}"
        problem = f"holds {half}, half of a character (a lone surrogate), which is no text"
        raise UserError(problem, where=place, do="write the whole character or none") from None
    if "\0" in value:
        do = "look for damage, or save the file as UTF-8"
        raise UserError("holds a NUL character", where=place, do=do)


# CSV and TSV --------------------------------------------------------------------------------------


class _Delimited:
    """The rows of one CSV or TSV file."""

    def __init__(
        self, path: Path, separator: str, needed: Sequence[str], strict: bool, quote: bool
    ) -> None:
        self.path, self.separator, self.needed = path, separator, needed
        self.strict, self.quote = strict, quote
        self.file, self.lines = shown_name(path), list[str]()
        """The lines of the row that is read."""
        self.header: list[str] = []
        self.hint = "look for a missing quote or a truncated file"
        if quote:
            self.hint += AS_PLAIN

    def _lines_of_row(self, text: io.TextIOWrapper) -> Iterator[str]:
        """Iterate over the lines, which the parser takes until a row is whole."""
        lines = self.lines
        for line in text:
            lines.append(line)
            # A byte-order mark may stand in front of any row where files were joined.
            yield line.lstrip(BOM) if line[0] == BOM and len(lines) == 1 else line

    def records(self, handle: IO[bytes]) -> Iterator[Record]:
        # What is not UTF-8 becomes surrogates here, and the same bytes again when it is written.
        text = io.TextIOWrapper(handle, "utf-8", errors="surrogateescape", newline="")
        # No limit on the length of a field: that of a text is `data.max_characters`.
        csv.field_size_limit(sys.maxsize)
        reader = csv.reader(
            self._lines_of_row(text),
            delimiter=self.separator,
            strict=True,
            quoting=quotes(self.quote),
        )
        number, place = 0, f"{self.file}, header"
        lines, strict, width = self.lines, self.strict, 0
        try:
            for cells in reader:
                row = "".join(lines)
                raw = row.encode("utf-8", "surrogateescape")
                if not cells:
                    lines.clear()
                    yield Record(raw, None, place)
                    continue
                if width:
                    number += 1
                    place = f"{self.file}, row {number} (line {reader.line_num})"
                    if len(cells) != width or len(lines) > 1:
                        self._check_row(cells, place, number, reader.line_num)
                if strict and not (row.isascii() and "\0" not in row):
                    self._check_text(row, place)
                if width:
                    lines.clear()
                    yield Record(raw, dict(zip(self.header, cells, strict=True)), place)
                else:
                    self._check_header(cells, reader.line_num)
                    lines.clear()
                    self.header, width = cells, len(cells)
                    yield Record(raw, dict.fromkeys(cells), place, is_header=True)
        except csv.Error as error:
            problem = f"not well-formed from here on ({error})"
            raise UserError(problem, where=place, do=self.hint) from None
        if not self.header:
            check_columns(self.path, self.header, self.needed)

    def _check_row(self, cells: list[str], place: str, number: int, last: int) -> None:
        if len(cells) != len(self.header):
            problem = f"{len(cells)} fields where the header has {len(self.header)}"
            raise UserError(problem, where=place, do=self.hint)
        if self._are_rows(len(cells)):
            first = last - len(self.lines) + 1
            problem = (
                f"a quoted cell, of lines {first} to {last}, holds what looks like a whole row"
            )
            where = f"{self.file}, row {number}"
            raise UserError(problem, where=where, do=f"close the quote or double it{AS_PLAIN}")

    def _check_header(self, cells: list[str], last: int) -> None:
        if self._are_rows(len(cells)):
            problem = f"a quoted name in its header, of lines 1 to {last}, holds whole rows"
            raise UserError(problem, where=self.path, do=self.hint)
        check_columns(self.path, cells, self.needed)

    def _are_rows(self, width: int) -> bool:
        """Return whether each line of a row looks like one: a `"` that opens a cell by chance, as
        the first character of a sentence does, closes at the next one lines below. A comma before
        a space is one of prose, and one alone of a number."""
        rows = [_split_line(line, self.separator) for line in self.lines if line.strip()]
        return (width - 1) * (len(rows) - 1) > 1 and all(
            len(row) == width and row[0].strip() and not any(cell[:1] == " " for cell in row)
            for row in rows
        )

    def _check_text(self, row: str, place: str) -> None:
        try:
            row.encode("utf-8")
        except UnicodeEncodeError:
            raise UserError("not valid UTF-8", where=place, do="save the file as UTF-8") from None
        check_text(row, place)


def _split_line(line: str, separator: str) -> list[str]:
    """Return the cells of a line by itself: a quote that does not close in it is a character."""
    end = f"(?={re.escape(separator)}|$)"
    cell = f'"(?:[^"]|"")*"{end}|[^{re.escape(separator)}]*{end}'
    cells = re.findall(f"(?:^|(?<={re.escape(separator)}))(?:{cell})", line.rstrip("\r\n"))
    return [each.strip('"') for each in cells]


# Text, JSON Lines and arrays ----------------------------------------------------------------------


def _integer(digits: str) -> int | Decimal:
    # Python refuses to read longer ones.
    return int(digits) if len(digits) <= 4000 else Decimal(digits)


DECODER = json.JSONDecoder(parse_int=_integer)


def _rows(path: Path, form: str | None, handle: IO[bytes]) -> Iterator[Record]:
    """Iterate over the rows of a file of JSON, which may be one array, or over lines of text."""
    if form == "json":
        content = handle.read()
        if content.lstrip(BLANK).startswith(b"["):
            yield from _json_array(path, _decoded(content, shown_name(path)))
            return
        handle = io.BytesIO(content)
    for number, line in enumerate(handle, 1):
        place = f"{shown_name(path)}, row {number}"
        while number == 1 and line.startswith(MARK):
            # It is the file's, and stays where its first row goes.
            yield Record(MARK, None, place)
            line = line[len(MARK) :]
        if not line.strip(BLANK):
            yield Record(line, None, place)
            continue
        text = _decoded(line, place)
        if form == "txt":
            yield Record(line, {"text": text.rstrip("\r\n")}, place)
            continue
        try:
            row = DECODER.decode(text.lstrip(BOM))
        except (ValueError, ArithmeticError, RecursionError) as error:
            problem, do = f"not valid JSON ({error})", "one object a line"
            raise UserError(problem, where=place, do=do) from None
        yield Record(line, _object(row, place), place)


def _json_array(path: Path, text: str) -> Iterator[Record]:
    """Iterate over the objects of an array, each with the comma before it."""
    start = at = text.index("[") + 1
    place, number = shown_name(path), 0
    yield Record(text[:start].encode(), None, place)
    try:
        while text[at := behind(text, at)] != "]" or text[start:at].strip():
            number += 1
            place = f"{shown_name(path)}, row {number}"
            row, stop = DECODER.raw_decode(text, at)
            yield Record(text[start:stop].encode(), _object(row, place), place)
            start, at = stop, behind(text, stop)
            if text[at] == "]":
                break
            if text[at] != ",":
                raise json.JSONDecodeError("Expecting ',' delimiter", text, at)
            at += 1
        if text[at + 1 :].strip():
            raise json.JSONDecodeError("Extra data", text, at + 1)
    except (ValueError, IndexError, RecursionError) as error:
        problem = f"not valid JSON from here on ({error})"
        raise UserError(problem, where=place, do="look for a truncated file") from None
    yield Record(text[start:].encode(), None, place)


def _decoded(content: bytes, place: str) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise UserError("not valid UTF-8", where=place, do="save the file as UTF-8") from None


def _object(row: Any, place: str) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise UserError("not a JSON object", where=place, do="one object a line, or in an array")
    return row
