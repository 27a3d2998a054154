"""Tables from the files that people have: CSV, TSV, JSON Lines (each plain or packed), Parquet and
Arrow; one file or a folder of shards. Every problem is reported with the file and the row, which
counts from 1 without the header; of CSV also with the line on which the row ends.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
import lzma
import math
import random
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from mamushi.artifacts import tabular
from mamushi.errors import UserError

SEPARATORS = {"csv": ",", "tsv": "\t"}
COLUMNAR = ("parquet", "arrow")
FIRST = 100
"""Rows of JSON Lines whose keys are taken for the columns."""


@dataclass(frozen=True)
class Table:
    """Columns of a file by name, and the place of each row for messages."""

    file: str
    columns: dict[str, list[Any]]
    places: list[str]
    typed: bool
    """Whether values have types of their own; those of CSV and TSV are all text."""
    numbers: list[int] = field(default_factory=list)
    """Of each row in the files, from 1; none where all were read."""


class Record(NamedTuple):
    """A header, blank line or row of CSV, TSV or JSON Lines."""

    raw: bytes
    cells: dict[str, Any] | None
    """By column; None for a blank line."""
    place: str
    is_header: bool = False


Row = tuple[int, str, Mapping[str, Any]]
"""The number of a row in all files, from 1, its place and its cells."""
Choice = Callable[[Iterator[Row]], list[Row]]


def read(path: str | Path, needed: Sequence[str], choose: Choice | None = None) -> Table:
    """Read the columns ``needed`` of a table, whose format is known by the ending of its files; of
    all rows, or of those that ``choose`` returns.

    Raises ``UserError`` for a missing or damaged file, a missing column, a row of the wrong length,
    and text that is not UTF-8.
    """
    path = Path(path)
    files = tabular.find(path)
    kind = tabular.format_of(files[0])
    table = Table(path.name, {name: [] for name in needed}, [], typed=kind not in SEPARATORS)
    found: dict[str, None] = {}
    every = (row for file in files for row in rows(file, needed))

    def numbered() -> Iterator[Row]:
        for number, (place, cells) in enumerate(every, 1):
            found.update(dict.fromkeys(cells))
            yield number, place, cells

    for number, place, cells in numbered() if choose is None else choose(numbered()):
        table.places.append(place)
        if choose is not None:
            table.numbers.append(number)
        for name, column in table.columns.items():
            column.append(cells.get(name))
    if not table.places:
        raise UserError("no rows", where=path, do="give a file with data")
    # Of JSON Lines: a key may come up in a later row for the first time.
    check_columns(path, list(found), needed)
    return table


def sampled(path: str | Path, columns: Sequence[str], most: int) -> tuple[Table, int]:
    """Read the ``columns`` of ``most`` rows of a table, each as likely as any other (Vitter 1985),
    and the number of all. Raises ``UserError`` as ``read``."""
    rng, n = random.Random(0), 0

    def choose(rows: Iterator[Row]) -> list[Row]:
        nonlocal n
        kept: list[Row] = []
        for row in rows:
            n += 1
            if len(kept) < most:
                kept.append(row)
            elif (place := rng.randrange(n)) < most:
                kept[place] = row
        return sorted(kept, key=lambda row: row[0])

    return read(path, columns, choose), n


def rows(path: Path, needed: Sequence[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Iterate over the place and the cells of every row of one file, by column: the ``needed`` ones
    of Parquet and Arrow, all of other formats. Raises ``UserError`` as ``read``."""
    if tabular.format_of(path) not in COLUMNAR:
        for record in records(path, needed):
            if record.cells is not None and not record.is_header:
                yield record.place, record.cells
        return
    number = 0
    with opened_columns(path) as (schema, tables):
        check_columns(path, schema.names, needed)
        for table in tables(list(dict.fromkeys(needed))):
            cells = {name: _values(table[name], name, path) for name in table.column_names}
            for row in zip(*cells.values(), strict=True):
                number += 1
                yield f"{path.name}, row {number}", dict(zip(cells, row, strict=True))


def columns(path: str | Path) -> list[str]:
    """Return the names of all columns of a table; of JSON Lines those of the first rows."""
    file = tabular.find(path)[0]
    if tabular.format_of(file) in COLUMNAR:
        with opened_columns(file) as (schema, _):
            return list(schema.names)
    names: dict[str, None] = {}
    for record in islice((each for each in records(file, ()) if each.cells), FIRST):
        names |= dict.fromkeys(record.cells or ())
        if record.is_header:
            break
    return list(names)


def check_header(path: str | Path, needed: Sequence[str]) -> None:
    """Raise ``UserError`` for a needed column that CSV or TSV lacks. Other formats are not opened:
    their columns are in later rows, or take a library that is slow to load."""
    file = tabular.find(path)[0]
    if tabular.format_of(file) in SEPARATORS and file.suffix.lower() != ".zst":
        next(records(file, needed), None)


def check_columns(path: str | Path, found: list[str], needed: Sequence[str]) -> None:
    """Raise ``UserError`` that names the first needed column that is not there, or twice."""
    if needed and not found:
        raise UserError("is empty", where=path, do="give a file with a header and rows")
    for name in needed:
        if found.count(name) > 1:
            what = f"column {name!r} is there {found.count(name)} times"
            raise UserError(what, where=path, do="give every column a name of its own")
        if name not in found:
            have = ", ".join(map(repr, found))
            raise UserError(f"no column {name!r}", where=path, do=f"it has {have}")


def check_text(value: str, place: str) -> None:
    """Raise ``UserError`` when ``value`` holds bytes or code points that UTF-8 cannot express, or a
    NUL, which no text has in it that was written or read as it should be."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise UserError("not valid UTF-8", where=place, do="save the file as UTF-8") from None
    if "\0" in value:
        do = "look for damage, or save the file as UTF-8"
        raise UserError("holds a NUL character", where=place, do=do)


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
    return str(value)


# CSV, TSV and JSON Lines --------------------------------------------------------------------------


def records(path: Path, needed: Sequence[str], *, strict: bool = True) -> Iterator[Record]:
    """Iterate over each header, blank line and row of a CSV, TSV or JSON Lines file, packed or not.

    Their bytes, one after the other, are the file's. Raises ``UserError`` as ``read``; without
    ``strict``, a row of CSV may hold bytes that are not UTF-8.
    """
    separator = SEPARATORS.get(tabular.format_of(path) or "")
    with opened(path) as handle:
        if separator is None:
            yield from _json_lines(path, handle)
        else:
            yield from _delimited(path, handle, separator, needed, strict)


def _delimited(
    path: Path, handle: IO[bytes], separator: str, needed: Sequence[str], strict: bool
) -> Iterator[Record]:
    # What is not UTF-8 becomes surrogates here, and the same bytes again when it is written.
    text = io.TextIOWrapper(handle, "utf-8", errors="surrogateescape", newline="")
    lines: list[str] = []

    def lines_of_row() -> Iterator[str]:
        """Iterate over the lines, which the parser takes until a row is whole."""
        for number, line in enumerate(text):
            lines.append(line)
            yield line if number else line.removeprefix("\ufeff")

    # No limit on the length of a field: that of a text is `data.max_characters`.
    csv.field_size_limit(sys.maxsize)
    reader = csv.reader(lines_of_row(), delimiter=separator, strict=True)
    header: list[str] = []
    file, number = path.name, 0
    place = f"{file}, header"
    damage = "look for a missing quote or a truncated file"
    try:
        for cells in reader:
            row = "".join(lines)
            raw = row.encode("utf-8", "surrogateescape")
            lines.clear()
            if not cells:
                yield Record(raw, None, place)
                continue
            if header:
                number += 1
                place = f"{file}, row {number} (line {reader.line_num})"
                if len(cells) != len(header):
                    what = f"{len(cells)} fields where the header has {len(header)}"
                    raise UserError(what, where=place, do=damage)
            if strict and not (row.isascii() and "\0" not in row):
                check_text(row, place)
            if header:
                yield Record(raw, dict(zip(header, cells, strict=True)), place)
            else:
                header = cells
                check_columns(path, header, needed)
                yield Record(raw, dict.fromkeys(header), place, is_header=True)
    except csv.Error as error:
        raise UserError(f"not well-formed from here on ({error})", where=place, do=damage) from None
    if not header:
        check_columns(path, header, needed)


def _json_lines(path: Path, handle: IO[bytes]) -> Iterator[Record]:
    do = "one object a line"
    for number, line in enumerate(handle, 1):
        place = f"{path.name}, row {number}"
        if not line.strip():
            yield Record(line, None, place)
            continue
        try:
            row = json.loads(line.decode("utf-8-sig"))
        except UnicodeDecodeError:
            raise UserError("not valid UTF-8", where=place, do="save the file as UTF-8") from None
        except (json.JSONDecodeError, RecursionError) as error:
            raise UserError(f"not valid JSON ({error})", where=place, do=do) from None
        if not isinstance(row, dict):
            raise UserError("not a JSON object", where=place, do=do)
        yield Record(line, row, place)


@contextlib.contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading bytes, unpacked; of a zip archive, the one file in it."""
    packing = path.suffix.lower()
    try:
        with contextlib.ExitStack() as files:
            if packing == ".gz":
                handle = cast(IO[bytes], files.enter_context(gzip.open(path)))
            elif packing == ".zst":
                import pyarrow as pa

                stream = pa.input_stream(str(path), compression="zstd")
                handle = io.BufferedReader(files.enter_context(stream))
            elif packing == ".zip":
                archive = files.enter_context(zipfile.ZipFile(path))
                inside = (m for m in archive.infolist() if "__MACOSX" not in m.filename)
                members = [member for member in inside if not member.is_dir()]
                if len(members) != 1:
                    what = f"holds {len(members)} files"
                    raise UserError(what, where=path, do="zip one file alone")
                handle = files.enter_context(archive.open(members[0]))
            else:
                handle = files.enter_context(path.open("rb"))
            yield handle
    except RuntimeError as error:
        # Encrypted, or by a method that is not known.
        what = f"packed in a way that cannot be read here ({error})"
        raise UserError(what, where=path, do="unpack it") from None
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError) as error:
        if packing not in tabular.PACKED or (
            isinstance(error, OSError) and error.errno is not None
        ):
            raise  # The file system's; that of a damaged stream has no number.
        what = f"truncated or damaged {packing[1:]} ({error})"
        raise UserError(what, where=path, do="download or make it again") from None


# Parquet and Arrow --------------------------------------------------------------------------------


@contextlib.contextmanager
def opened_columns(path: Path) -> Iterator[tuple[Any, Callable[[list[str] | None], Iterator[Any]]]]:
    """Open a Parquet file or an Arrow stream, as ``datasets`` writes it: its schema, and a function
    that reads its row groups or record batches one by one as tables, with some columns or all
    (None). Raises ``UserError`` for a damaged file, also while it is read.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    def tables(names: list[str] | None) -> Iterator[Any]:
        if is_parquet:
            for number in range(source.num_row_groups):
                yield source.read_row_group(number, columns=names)
        else:
            for batch in source:
                table = pa.Table.from_batches([batch])
                yield table if names is None else table.select(names)

    is_parquet = tabular.format_of(path) == "parquet"
    try:
        # A file by itself: the names of folders above it are no columns.
        file = pq.ParquetFile(path) if is_parquet else pa.ipc.open_stream(str(path))
        with file as source:
            yield source.schema_arrow if is_parquet else source.schema, tables
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # The file system's, perhaps of what is written meanwhile.
        what = f"damaged or not {'a Parquet file' if is_parquet else 'an Arrow stream'} ({error})"
        raise UserError(what, where=path, do="make it again") from None


def _values(column: Any, name: str, path: Path) -> list[Any]:
    """Return the cells of an Arrow column."""
    import pyarrow as pa

    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError, pa.ArrowException) as error:
        what = f"column {name!r} holds {column.type} that cannot be read ({error})"
        raise UserError(what, where=path, do="write it as numbers or UTF-8 text") from None
