"""Records of CSV, TSV, JSON (objects a line, or in an array) and lines of text, plain or packed,
with their bytes."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import sys
from collections import Counter
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
_EXACT = 2.0**53
"""From here on not every integer is a float."""
_DIGITS = 4000
"""Digits of an integer that Python reads without being asked to, at least."""


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
            yield from _rows(path, tabular.format_of(path), handle, needed)
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


# JSON Lines ---------------------------------------------------------------------------------------


class _Doubled(dict[str, Any]):
    """An object of JSON that has a key twice."""

    twice: frozenset[str] = frozenset()


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    cells = dict(pairs)
    if len(cells) == len(pairs):
        return cells
    doubled, times = _Doubled(cells), Counter(name for name, _ in pairs)
    doubled.twice = frozenset(name for name in times if times[name] > 1)
    return doubled


def _integer(digits: str) -> int | Decimal:
    # Python refuses to read longer ones.
    return int(digits) if len(digits) <= _DIGITS else Decimal(digits)


OBJECTS = json.JSONDecoder(object_pairs_hook=_object)
EXACTLY = json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer, parse_float=Decimal)
_LONG = json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer)


def _json_lines(path: Path, handle: IO[bytes], needed: Sequence[str]) -> Iterator[Record]:
    file = shown_name(path)
    for number, line in enumerate(handle, 1):
        place = f"{file}, row {number}"
        while number == 1 and line.startswith(MARK):
            # It is the file's, and stays where its first row goes.
            yield Record(MARK, None, place)
            line = line[len(MARK) :]
        if not line.strip():
            yield Record(line, None, place)
            continue
        try:
            text = line.decode("utf-8").lstrip(BOM).strip(" \t\r\n")
            if not text:
                yield Record(line, None, place)
                continue
            row = _parsed(text)
        except UnicodeDecodeError:
            raise UserError("not valid UTF-8", where=place, do="save the file as UTF-8") from None
        except (ValueError, ArithmeticError, RecursionError) as error:
            problem, do = f"not valid JSON ({error})", "one object a line"
            if b"\r" in line.strip():
                problem, do = "its lines end in CR alone", "save it with LF or CR LF"
            raise UserError(problem, where=place, do=do) from None
        yield Record(line, _cells(row, text, needed, place), place)


def _cells(row: Any, text: str, needed: Sequence[str], place: str) -> dict[str, Any]:
    """Return the cells of a row of JSON, which stands so in the file."""
    if not isinstance(row, dict):
        raise UserError("not a JSON object", where=place, do="one object a line, or in an array")
    if isinstance(row, _Doubled) and (twice := row.twice.intersection(needed)):
        problem = f"key {min(twice)!r} is there more than once"
        raise UserError(problem, where=place, do="give every key of an object once")
    for name in needed:
        if isinstance(value := row.get(name), float) and not -_EXACT < value < _EXACT:
            row[name] = _exact(value, text, name)
    return row


def _json_array(path: Path, text: str, needed: Sequence[str]) -> Iterator[Record]:
    """Iterate over the objects of an array, each with the comma before it."""
    start = at = text.index("[") + 1
    place, number = shown_name(path), 0
    yield Record(text[:start].encode(), None, place)
    try:
        while text[at := behind(text, at)] != "]" or text[start:at].strip():
            number += 1
            place = f"{shown_name(path)}, row {number}"
            try:
                row, stop = OBJECTS.raw_decode(text, at)
            except json.JSONDecodeError:
                raise
            except ValueError:
                row, stop = _LONG.raw_decode(text, at)
            cells = _cells(row, text[at:stop], needed, place)
            yield Record(text[start:stop].encode(), cells, place)
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


def _rows(
    path: Path, form: str | None, handle: IO[bytes], needed: Sequence[str]
) -> Iterator[Record]:
    """Iterate over the rows of a file of JSON, which may be one array, or over lines of text."""
    if form == "txt":
        yield from _text_lines(path, handle)
        return
    if form == "json":
        content = handle.read()
        if content.lstrip(BLANK).startswith(b"["):
            try:
                text = content.decode("utf-8")
            except UnicodeDecodeError:
                do = "save the file as UTF-8"
                raise UserError("not valid UTF-8", where=path, do=do) from None
            yield from _json_array(path, text, needed)
            return
        handle = io.BytesIO(content)
    yield from _json_lines(path, handle, needed)


def _text_lines(path: Path, handle: IO[bytes]) -> Iterator[Record]:
    """Iterate over lines, each a text in the column ``text``."""
    for number, line in enumerate(handle, 1):
        place = f"{shown_name(path)}, row {number}"
        while number == 1 and line.startswith(MARK):
            yield Record(MARK, None, place)
            line = line[len(MARK) :]
        if not line.strip(BLANK):
            yield Record(line, None, place)
            continue
        try:
            yield Record(line, {"text": line.decode("utf-8").rstrip("\r\n")}, place)
        except UnicodeDecodeError:
            raise UserError("not valid UTF-8", where=place, do="save the file as UTF-8") from None


def _parsed(text: str) -> Any:
    try:
        return OBJECTS.decode(text)
    except json.JSONDecodeError:
        raise
    except ValueError:
        return _LONG.decode(text)


def _exact(value: float, text: str, name: str) -> Any:
    """Return a large number as it is written where the float is another one: as an integer where it
    is one, so that an id is not taken for its neighbour."""
    try:
        written = EXACTLY.decode(text)[name]
    except ArithmeticError:
        # Of more digits in its exponent than anything has.
        return value
    if not isinstance(written, Decimal) or not written.is_finite():
        return value
    plain = int(written.as_tuple().exponent) <= 0
    if not plain and written == Decimal(repr(value)):
        return value
    if written == written.to_integral_value() and written.adjusted() < _DIGITS:
        return int(written)
    return written
