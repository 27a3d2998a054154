"""Tables from the files that people have: CSV, TSV, JSON Lines (each plain or packed), Parquet and
Arrow; one file or a folder of shards.

Every problem is told with the file and the row. A row counts from 1, the header not included; since
a quoted field may hold line breaks, the line on which a CSV row ends is given as well.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
import lzma
import math
import os
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from mamushi.artifacts import shards
from mamushi.errors import UserError

ENCRYPTED = 0x1
"""Bit of a zip member's flags."""


SEPARATORS = {"csv": ",", "tsv": "\t"}
OTHERS = ";\t|,"
"""What people separate columns by."""
TYPED = ("jsonl", "parquet", "arrow")
"""Formats whose values have types of their own."""
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
    whole: bool = True
    """Whether these are all rows of the file."""


def find(folder: str | Path, name: str) -> Path:
    """``folder/name``, or ``folder/name.zip`` where only that exists.

    Raises ``UserError`` when neither does.
    """
    folder = Path(folder)
    for path in (folder / name, folder / f"{name}.zip"):
        if path.is_file():
            return path
    what = f"neither {name} nor {name}.zip" if folder.is_dir() else "no such folder"
    raise UserError(what, where=folder, do="give the folder that holds the original files")


def read(path: str | Path, needed: Sequence[str], most: int | None = None) -> Table:
    """The columns ``needed`` of a table; the endings of its files tell the format.

    With ``most``, the first rows of its first file alone, so many at most; none of a file that
    takes a library which is slow to load: of Parquet the columns are looked for, no more. Raises
    ``UserError`` for a missing or damaged file, a missing column, a row of the wrong length, and
    text that is not UTF-8.
    """
    path = Path(path)
    files = shards.of(path)
    kind = shards.kind(files[0])
    if most is not None and (kind == "arrow" or files[0].suffix.lower() == ".zst"):
        return Table(path.name, {}, [], kind in TYPED, whole=False)
    keys: dict[str, None] = {}
    looked_at = files if most is None else files[:1]
    tables = [_read(file, kind, needed, most, keys) for file in looked_at]
    whole = len(tables) == len(files) and all(table.whole for table in tables)
    places = [place for table in tables for place in table.places]
    columns = {
        name: [cell for table in tables for cell in table.columns[name]]
        for name in tables[0].columns
    }
    # A key may come up in a later row for the first time.
    if kind == "jsonl" and places and whole:
        check_columns(path, list(keys), needed)
    if not places and whole:
        raise UserError("no rows", where=path, do="give a file with data")
    return Table(path.name, columns, places, kind in TYPED, whole)


def _read(
    path: Path, kind: str | None, needed: Sequence[str], most: int | None, keys: dict[str, None]
) -> Table:
    """One file; ``keys`` takes up those of JSON objects."""
    if kind in SEPARATORS:
        return _delimited(path, SEPARATORS[kind], needed, most)
    if kind == "jsonl":
        return _json_lines(path, needed, most, keys)
    if kind == "arrow":
        return _columnar(path, needed, *_ipc(path))
    return _parquet(path, needed) if most is None else _parquet_header(path, needed)


def columns(path: str | Path) -> list[str]:
    """The names of all columns of a table; of JSON Lines those of the first rows.

    Raises ``UserError`` as ``read`` does.
    """
    file = shards.of(path)[0]
    kind = shards.kind(file)
    if kind in SEPARATORS:
        with _fields_of_any_length(), opened(file) as handle:
            return _header(file, _rows(handle, SEPARATORS[kind]))
    if kind == "jsonl":
        keys: dict[str, None] = {}
        _json_lines(file, [], FIRST, keys)
        return list(keys)
    if kind == "arrow":
        return list(_ipc(file)[0])
    return list(_parquet_names(file))


def check_columns(path: str | Path, found: list[str], needed: Sequence[str]) -> None:
    """Raise ``UserError`` that names the first needed column that is not there, or twice."""
    for name in needed:
        if found.count(name) > 1:
            raise UserError(
                f"column {name!r} is there {found.count(name)} times",
                where=path,
                do="give every column a name of its own",
            )
        if name not in found:
            other = next((mark for mark in OTHERS if len(found) == 1 and mark in found[0]), None)
            if other:
                raise UserError(
                    f"no column {name!r}: its columns seem to be separated by {other!r}",
                    where=path,
                    do="save it with commas as .csv, or with tabs as .tsv",
                )
            raise UserError(
                f"no column {name!r}", where=path, do=f"it has {', '.join(map(repr, found))}"
            )


def check_text(value: str, place: str) -> None:
    """Raise ``UserError`` when ``value`` holds bytes or code points that UTF-8 cannot express, or a
    NUL, which no text has in it that was written or read as it should be."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise UserError("not valid UTF-8", where=place, do="save the file as UTF-8") from None
    if "\0" in value:
        raise UserError(
            "holds a NUL character", where=place, do="look for damage, or save the file as UTF-8"
        )


@contextlib.contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading bytes, unpacked; of a zip archive, the one member of interest."""
    packed = path.suffix.lower()
    if packed not in shards.PACKED:
        with path.open("rb") as handle:
            yield handle
        return
    try:
        if packed == ".gz":
            with gzip.open(path) as unpacked:
                yield cast(IO[bytes], unpacked)
        elif packed == ".zst":
            import pyarrow as pa

            with pa.OSFile(str(path)) as raw, pa.CompressedInputStream(raw, "zstd") as stream:
                yield io.BufferedReader(stream)
        else:
            with zipfile.ZipFile(path) as archive, archive.open(_member(path, archive)) as member:
                yield member
    except NotImplementedError as error:
        raise UserError(
            f"packed in a way that cannot be read here ({error})", where=path, do="unpack it"
        ) from None
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # The file system's; that of a damaged stream has no number.
        raise UserError(
            f"truncated or damaged {packed[1:]} ({error})",
            where=path,
            do="download or make it again",
        ) from None


def _member(path: Path, archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    """The member called like the archive without ``.zip``, or the only one that there is."""
    files = [m for m in archive.infolist() if not m.is_dir() and "__MACOSX" not in m.filename]
    named = [m for m in files if Path(m.filename).name == path.stem] or files
    if len(named) != 1:
        raise UserError(f"no member {path.stem!r}", where=path, do="zip that one file alone")
    if named[0].flag_bits & ENCRYPTED:
        raise UserError("it is encrypted", where=path, do="unpack it")
    return named[0]


@contextlib.contextmanager
def _fields_of_any_length() -> Iterator[None]:
    """Lift the limit of ``csv`` on the length of a field: `clean` has the one that is meant."""
    before = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _header(path: Path, reader: Iterator[list[str]]) -> list[str]:
    """The names of the columns; none of an empty file."""
    place = f"{path}, header"
    try:
        names = next(reader, [])
    except csv.Error as error:
        raise UserError(
            f"not well-formed ({error})", where=place, do="look for a quote out of place"
        ) from None
    check_text("".join(names), place)
    return names


def _rows(handle: IO[bytes], separator: str) -> Any:
    """The rows of CSV. Bytes that are not UTF-8 become surrogates, so that whoever checks them can
    name the row."""
    text = io.TextIOWrapper(handle, "utf-8-sig", errors="surrogateescape", newline="")
    return csv.reader(text, delimiter=separator, strict=True)


def _delimited(path: Path, separator: str, needed: Sequence[str], most: int | None) -> Table:
    with _fields_of_any_length(), opened(path) as handle:
        reader = _rows(handle, separator)
        header = _header(path, reader)
        check_columns(path, header, needed)
        positions = [header.index(name) for name in needed]
        columns: list[list[str]] = [[] for _ in needed]
        places: list[str] = []
        place, whole = f"{path.name}, header", True
        try:
            for row in reader:
                if not row:
                    continue
                if len(places) == most:
                    whole = False
                    break
                place = f"{path.name}, row {len(places) + 1} (line {reader.line_num})"
                if len(row) != len(header):
                    raise UserError(
                        f"{len(row)} fields where the header has {len(header)}",
                        where=place,
                        do="look for a missing quote or a truncated file",
                    )
                check_text("".join(row), place)
                for column, position in zip(columns, positions, strict=True):
                    column.append(row[position])
                places.append(place)
        except csv.Error as error:
            raise UserError(
                f"not well-formed after this ({error})",
                where=place,
                do="look for a missing quote or a truncated file",
            ) from None
    return Table(path.name, dict(zip(needed, columns, strict=True)), places, False, whole)


def _json_lines(
    path: Path, needed: Sequence[str], most: int | None, found: dict[str, None]
) -> Table:
    columns: dict[str, list[Any]] = {name: [] for name in needed}
    places: list[str] = []
    whole = True
    with opened(path) as handle:
        for number, line in enumerate(handle, 1):
            if len(places) == most:
                whole = False
                break
            place = f"{path.name}, row {number}"
            try:
                row = json.loads(line.decode("utf-8-sig")) if line.strip() else None
            except UnicodeDecodeError:
                raise UserError(
                    "not valid UTF-8", where=place, do="save the file as UTF-8"
                ) from None
            except (json.JSONDecodeError, RecursionError) as error:
                raise UserError(
                    f"not valid JSON ({error})", where=place, do="one object a line"
                ) from None
            if row is None:
                continue
            if not isinstance(row, dict):
                raise UserError("not a JSON object", where=place, do="one object a line")
            found.update(dict.fromkeys(row))
            for name, column in columns.items():
                column.append(row.get(name))
            places.append(place)
    return Table(path.name, columns, places, True, whole)


def _parquet_header(path: Path, needed: Sequence[str]) -> Table:
    """No rows, but each needed column is there: its footer has the name in it, as plain text."""
    with path.open("rb") as handle:
        content = handle.read(4)
        if handle.seek(0, os.SEEK_END) >= 12:
            handle.seek(-8, os.SEEK_END)
            size, content = int.from_bytes(handle.read(4), "little"), content + handle.read(4)
            handle.seek(-min(size + 8, handle.tell()), os.SEEK_END)
            footer = handle.read()
    if content != b"PAR1PAR1":
        raise UserError("damaged or not a Parquet file", where=path, do="make it again")
    for name in needed:
        raw = name.encode()
        # After its length, which is a byte up to 127, or `id` would be found in anything.
        if len(raw) < 128 and bytes([len(raw)]) + raw not in footer:
            raise UserError(f"no column {name!r}", where=path, do="name one of its columns")
    return Table(path.name, {}, [], True, whole=False)


def _parquet_names(path: Path) -> Sequence[str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        names: Sequence[str] = pq.read_schema(path).names
    except (pa.ArrowException, OSError) as error:
        raise UserError(
            f"damaged or not a Parquet file ({error})", where=path, do="make it again"
        ) from None
    return names


def _parquet(path: Path, needed: Sequence[str]) -> Table:
    import pyarrow.parquet as pq

    # A file by itself: the names of folders above it are no columns.
    return _columnar(
        path,
        needed,
        _parquet_names(path),
        lambda names: pq.ParquetFile(path).read(columns=names),
    )


def _ipc(path: Path) -> tuple[Sequence[str], Callable[[list[str]], Any]]:
    """The columns of an Arrow file, a stream as `datasets` writes it or a file with a footer, and
    what reads some of them."""
    import pyarrow as pa

    try:
        source = pa.memory_map(str(path))
        with contextlib.suppress(pa.ArrowInvalid):
            reader = pa.ipc.open_file(source)
            return reader.schema.names, lambda names: reader.read_all().select(names)
        source.seek(0)
        stream = pa.ipc.open_stream(source)
        return stream.schema.names, lambda names: stream.read_all().select(names)
    except (pa.ArrowException, OSError) as error:
        raise UserError(
            f"damaged or not an Arrow file ({error})", where=path, do="make it again"
        ) from None


def _columnar(
    path: Path,
    needed: Sequence[str],
    names: Sequence[str],
    load: Callable[[list[str]], Any],
) -> Table:
    """The rows of a file with the columns ``names``, of which ``load`` gives some as an Arrow
    table."""
    import pyarrow as pa

    check_columns(path, list(names), needed)
    try:
        table = load(list(dict.fromkeys(needed)))
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"damaged ({error})", where=path, do="make it again") from None
    places = [f"{path.name}, row {row + 1}" for row in range(table.num_rows)]
    columns = {}
    for name in table.column_names:
        column = table[name]
        try:
            columns[name] = column.to_pylist()
        except UnicodeDecodeError:
            # Name the row: its bytes are what Arrow itself did not check.
            for place, value in zip(
                places, column.cast(pa.large_binary()).to_pylist(), strict=True
            ):
                check_text((value or b"").decode("utf-8", "surrogateescape"), place)
            raise
        except (ValueError, OverflowError, pa.ArrowException) as error:
            raise UserError(
                f"column {name!r} holds {column.type} that cannot be read ({error})",
                where=path,
                do="write it as numbers or text",
            ) from None
    return Table(path.name, columns, places, typed=True)


def name_of(value: Any) -> str | None:
    """A cell as a name: ``1``, ``1.0`` and ``"1"`` agree, and so do ``true`` and ``"true"``.

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
