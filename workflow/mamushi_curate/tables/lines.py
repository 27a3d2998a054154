"""Records of CSV, TSV, JSON (objects a line, or in an array) and lines of text, plain or packed,
with their bytes."""

from __future__ import annotations

import contextlib
import csv
import gzip
import hashlib
import io
import itertools
import json
import os
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

from mamushi.errors import UserError, located, suggestion
from mamushi.io import tabular

# No limit on the length of a field: that of a text is `data.max_characters`.
csv.field_size_limit(sys.maxsize)
BOM = "\ufeff"
SEPARATORS = {"csv": ",", "tsv": "\t"}
MARK = BOM.encode()
HEAD = 50
"""Lines by which it is told what divides the cells of a .csv file."""
BLANK = b" \t\r\n\x0b\x0c" + MARK
TEXT = "text in an expression stands in quotes"
AS_PLAIN = ', or read " as any other character with --quote none'


class Dialect(NamedTuple):
    """How cells stand in a line of CSV and TSV: what divides them (None: as the ending says, or the
    first rows of a .csv), and whether a `"` holds them together or is a character as any other."""

    separator: str | None = None
    quote: bool = True

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Dialect:
        """Return the dialect that ``separator`` and ``quote`` set, of a loader or a command."""
        separator = settings.get("separator")
        return cls("\t" if separator == "tab" else separator, settings.get("quote") != "none")

    def at(self, path: Path) -> Dialect:
        """Return this with what divides the cells of a file. Raises ``UserError`` where that may be
        one of several."""
        usual = SEPARATORS.get(tabular.format_of(path) or "")
        if usual != "," or self.separator:
            return self._replace(separator=usual and (self.separator or usual))
        with open_binary(path) as file, unpack(path, file) as handle:
            text = io.TextIOWrapper(handle, "utf-8-sig", errors="replace", newline="")
            lines, likely = [*itertools.islice(text, HEAD)], []
        for separator in ",;|\t":
            widths = [len(row) for row in self._replace(separator=separator).cells(lines) if row]
            # Of a cell of many lines the end may not be read.
            widths = widths[:-1] if len(lines) == HEAD and widths[1:] else widths
            likely += [separator] if len({*widths}) == 1 and widths[0] > 1 else []
        if len(likely) > 1:
            problem = f"its cells may be divided by {' or '.join(map(repr, likely))}"
            raise UserError(problem, where=path, do="say by which with --separator")
        return self._replace(separator=likely[0] if likely else ",")

    def cells(self, lines: Iterable[str], *, strict: bool = False) -> Any:
        """Return the parser of some lines, which gives the cells of a row at a time."""
        quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if self.quote else csv.QUOTE_NONE
        separator = self.separator or ","
        return csv.reader(lines, delimiter=separator, strict=strict, quoting=quoting)


USUAL = Dialect()


class Record(NamedTuple):
    """A row of a table; of CSV, TSV and JSON Lines also a header or blank line."""

    raw: bytes
    """The bytes of a line; of Parquet and Arrow none."""
    cells: dict[str, Any] | None
    """By column; None for a blank line."""
    place: str
    is_header: bool = False


def records(
    path: Path, file: IO[bytes], needed: Sequence[str], dialect: Dialect, *, strict: bool = True
) -> Iterator[Record]:
    """Iterate over each header, blank line and row of a file that is open, whose bytes theirs are,
    one after the other. Without ``strict``, a row of CSV may hold bytes that are not UTF-8. Raises
    ``UserError`` as ``readers.read_file_columns``."""
    form, dialect = tabular.format_of(path) or "", dialect.at(path)
    with unpack(path, file) as handle:
        if form in SEPARATORS:
            yield from _delimited_rows(path, handle, needed, strict, dialect)
        else:
            yield from _json_rows(path, form, handle)


def shown_name(path: Path) -> str:
    """Return the name of a file for messages and tables, with bytes that are not UTF-8 escaped. It
    begins with the file's folder if that is named as ``year=2023``."""
    name = f"{path.parent.name}/{path.name}" if "=" in path.parent.name else path.name
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def check_columns(path: object, names: list[str], needed: Sequence[str], do: str = TEXT) -> None:
    """Raise ``UserError`` that names the first needed column that is not there, or twice."""
    for name in needed:
        if names.count(name) > 1:
            problem = f"column {name!r} is there {names.count(name)} times"
            raise UserError(problem, where=path, do="give every column a name of its own")
        if name not in names:
            advice = suggestion(name, names) or f"; {do}"
            there = f"it has {', '.join(map(repr, names))}{advice}"
            raise UserError(f"no column {name!r}", where=path, do=there)


def check_text(value: str, place: str) -> None:
    """Raise ``UserError`` when ``value`` holds what UTF-8 cannot express, as half of a character,
    or a NUL, which no text has in it that was written or read as it should be."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        problem = f"not valid UTF-8 ({error.reason})"
        raise UserError(problem, where=place, do="save the file as UTF-8") from None
    if "\0" in value:
        raise UserError("holds a NUL character", where=place, do="look for damage")


# One opening of a file: its bytes, unpacked, and the digest of just these -------------------------


@contextlib.contextmanager
def _note_file(path: Path) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        # Those of this program and of the system say themselves where they are.
        if not isinstance(error, UserError) and getattr(error, "errno", None) is None:
            error.add_note(str(path))
        raise


@contextlib.contextmanager
def open_binary(path: Path, digests: dict[str, str] | None = None) -> Iterator[IO[bytes]]:
    """Open a file to read any part of it. With ``digests``, its SHA-256 is noted there under its
    name: of the file that was read, whatever lies at the path by then. Raises ``UserError`` for a
    file that was written to meanwhile, and notes the file on what a library says of it."""
    with path.open("rb") as handle, _note_file(path):
        before = os.fstat(handle.fileno())
        yield handle
        if digests is not None:
            handle.seek(0)
            name = str(path) if path.name in digests else path.name
            digests[name] = hashlib.file_digest(handle, "sha256").hexdigest()
        now = os.fstat(handle.fileno())
        if (now.st_size, now.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
            do = "run the same command again when nothing writes to it"
            raise UserError("has changed while it was read", where=path, do=do)


@contextlib.contextmanager
def unpack(path: Path, file: IO[bytes], like: Path | None = None) -> Iterator[IO[bytes]]:
    """Read an open file unpacked; of a zip archive, the one file in it. How it is packed is told by
    its ending, or by that of ``like``."""
    packing = tabular.packing_of(Path(tabular.written_name(like)) if like else path)
    with contextlib.ExitStack() as files:
        # Whoever reads may close it, and the file stays open for its digest.
        source: Any = files.enter_context(open(file.fileno(), "rb", closefd=False))
        if packing == ".gz":
            source = files.enter_context(gzip.GzipFile(fileobj=source))
        elif packing == ".zst":
            import pyarrow as pa

            stream = pa.CompressedInputStream(pa.PythonFile(source, mode="r"), "zstd")
            source = io.BufferedReader(files.enter_context(stream))
        elif packing == ".zip":
            archive = files.enter_context(zipfile.ZipFile(source))
            inside = [of for of in archive.infolist() if "__MACOSX" not in of.filename]
            members = [of for of in inside if not of.is_dir()]
            if len(members) != 1:
                raise UserError(f"holds {len(members)} files", where=path, do="zip one file alone")
            source = files.enter_context(archive.open(members[0]))
        yield source


# CSV and TSV --------------------------------------------------------------------------------------


def _delimited_rows(
    path: Path, handle: IO[bytes], needed: Sequence[str], strict: bool, dialect: Dialect
) -> Iterator[Record]:
    """Iterate over the rows of a CSV or TSV file."""
    # What is not UTF-8 becomes surrogates here, and the same bytes again when it is written.
    text = io.TextIOWrapper(handle, "utf-8", errors="surrogateescape", newline="")
    file, lines, header, number = shown_name(path), list[str](), list[str](), 0
    place, hint = f"{file}, header", "look for a missing quote, or another --separator"
    hint += AS_PLAIN if dialect.quote else ""

    def lines_of_row() -> Iterator[str]:
        """Iterate over the lines, which the parser takes until a row is whole."""
        for line in text:
            lines.append(line)
            # A byte-order mark may stand in front of any row where files were joined.
            yield line.lstrip(BOM) if line[0] == BOM and len(lines) == 1 else line

    reader = dialect.cells(lines_of_row(), strict=True)
    try:
        for cells in reader:
            row, width = "".join(lines), len(header) or len(cells)
            raw = row.encode("utf-8", "surrogateescape")
            if header and cells:
                number += 1
                place = f"{file}, row {number} (line {reader.line_num})"
            if cells and len(cells) != width:
                problem = f"{len(cells)} fields where the header has {width}"
                raise UserError(problem, where=place, do=hint)
            if len(lines) > 1 and _are_rows(lines, width, dialect.separator or ","):
                first = reader.line_num - len(lines) + 1
                problem = f"a quoted cell, of lines {first} to {reader.line_num}, holds what looks "
                where, do = f"{file}, row {number}", f"close the quote or double it{AS_PLAIN}"
                raise UserError(f"{problem}like a whole row", where=where, do=do)
            if strict and not (row.isascii() and "\0" not in row):
                check_text(row, place)
            lines.clear()
            if header or not cells:
                by_name = dict(zip(header, cells, strict=True)) if cells else None
                yield Record(raw, by_name, place)
            else:
                check_columns(path, cells, needed)
                header = cells
                yield Record(raw, dict.fromkeys(cells), place, is_header=True)
    except csv.Error as error:
        problem = f"not well-formed from here on ({error})"
        raise UserError(problem, where=place, do=hint) from None


def _are_rows(lines: Sequence[str], width: int, separator: str) -> bool:
    """Return whether lines look like rows of ``width`` cells. If a `"` opened a cell by chance, as
    it may at the start of a sentence, its cell takes in whole rows below. A cell that begins with a
    space is prose, and a single separator may be a decimal comma."""
    # A quote that does not close in its line is a character.
    closed = [line.replace('"', "") if line.count('"') % 2 else line for line in lines]
    rows = [row for row in csv.reader(filter(str.strip, closed), delimiter=separator) if row]
    return (width - 1) * (len(rows) - 1) > 1 and all(
        len(row) == width and row[0].strip() and not any(cell[:1] == " " for cell in row)
        for row in rows
    )


# Text, JSON Lines and arrays ----------------------------------------------------------------------


# An integer may be of any length.
sys.set_int_max_str_digits(0)


def _json_rows(path: Path, form: str, handle: IO[bytes]) -> Iterator[Record]:
    """Iterate over the rows of a file of JSON, which may be one array, or over lines of text."""
    name = shown_name(path)
    if form == "json":
        content = handle.read()
        if content.lstrip(BLANK).startswith(b"["):
            yield from _json_array(name, content)
            return
        handle = io.BytesIO(content)
    for number, line in enumerate(handle, 1):
        place = f"{name}, row {number}"
        while number == 1 and line.startswith(MARK):
            # It is the file's, and stays where its first row goes.
            yield Record(MARK, None, place)
            line = line[len(MARK) :]
        cells = None
        if line.strip(BLANK):
            with located(place):
                text = line.decode("utf-8")
                is_text = form == "txt"
                row = {"text": text.rstrip("\r\n")} if is_text else json.loads(text.lstrip(BOM))
            cells = _json_object(row, place)
        yield Record(line, cells, place)


def _json_array(name: str, content: bytes) -> Iterator[Record]:
    """Iterate over the objects of an array, each on a line with the comma before it."""
    with located(name):
        rows, is_ascii = json.loads(content), content.isascii()
    yield Record(b"[", None, name)
    for number, row in enumerate(rows, 1):
        place = f"{name}, row {number}"
        written = f",\n{json.dumps(row, ensure_ascii=is_ascii)}".encode()
        yield Record(written, _json_object(row, place), place)
    yield Record(b"]\n", None, name)


def _json_object(row: Any, place: str) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise UserError("not a JSON object", where=place, do="one object a line, or in an array")
    return _flatten(row)


def _flatten(row: dict[str, Any]) -> dict[str, Any]:
    """Return an object with what objects in it have, as ``post.body``."""
    objects = {name: _flatten(cell) for name, cell in row.items() if isinstance(cell, dict)}
    inner = {f"{name}.{key}": cell for name, of in objects.items() for key, cell in of.items()}
    return row | inner | row if inner else row
