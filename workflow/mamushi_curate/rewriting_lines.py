"""CSV, TSV, JSON and text written again without some of their rows. Lines that stay keep their
bytes: quotes, line ends, the BOM. What was packed is packed again, but for zip."""

import contextlib
import csv
import gzip
import hashlib
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from mamushi.io import tabular
from mamushi_curate.removal import Verdicts
from mamushi_curate.tables.lines import BOM, Dialect, open_binary, unpack


def write_lines(path: Path, verdicts: Verdicts, out: Path, dialect: Dialect) -> str:
    """Write the records of ``path`` that stay to ``out``, packed as ``path`` is, and compare each
    byte that was written with these. Return the SHA-256 of what was written."""
    expected, written = hashlib.sha256(), dict[str, str]()
    form, header = tabular.format_of(path) or "", b""
    is_first = form == "json"
    with _write_packed(out, tabular.packing_of(path)) as sink:
        for record, verdict in verdicts:
            line = record.raw
            header = line if record.is_header else header
            if not verdict.stays:
                continue
            if verdict.cells:
                line = _with_cells(line, verdict.cells, form, header, dialect)
            if is_first and record.cells is not None:
                # In an array each has a comma before it, but for the first that remains.
                line, is_first = line.removeprefix(b","), False
            expected.update(line)
            sink.write(line)
    with open_binary(out, written) as file, unpack(out, file, like=path) as handle:
        if hashlib.file_digest(handle, "sha256").digest() != expected.digest():  # type: ignore[arg-type]
            raise RuntimeError(f"{path}: other bytes were written than stay; please report this")
    return written[out.name]


@contextlib.contextmanager
def _write_packed(path: Path, packing: str) -> Iterator[Any]:
    """Open a file to write; the same content gives the same bytes."""
    with contextlib.ExitStack() as files:
        raw = files.enter_context(path.open("wb"))
        if packing == ".gz":
            yield files.enter_context(gzip.GzipFile("", "wb", fileobj=raw, mtime=0))
        elif packing == ".zst":
            yield files.enter_context(pa.CompressedOutputStream(raw, "zstd"))
        else:
            yield raw


def _with_cells(
    line: bytes, cells: Mapping[str, str], form: str, header: bytes, dialect: Dialect
) -> bytes:
    """Return a line of a file of this format with some cells anew, and all others as they are."""
    row = line.decode("utf-8", "surrogateescape")
    if form == "txt":
        row = cells["text"] + row[len(row.rstrip("\r\n")) :]
    elif dialect.separator is None:
        row = _object_with_cells(row, cells)
    else:
        row = _row_with_cells(row, cells, header, dialect)
    return row.encode("utf-8", "surrogateescape")


def _object_with_cells(written: str, cells: Mapping[str, str]) -> str:
    """Return an object of JSON, as it is written, with some cells anew."""
    start = written.index("{")
    row, stop = json.JSONDecoder().raw_decode(written, start)
    for column, text in cells.items():
        *outer, name = [column] if column in row else column.split(".")
        inner = row
        for key in outer:
            inner = inner[key]
        inner[name] = text
    return written[:start] + json.dumps(row, ensure_ascii=written.isascii()) + written[stop:]


def _row_with_cells(row: str, cells: Mapping[str, str], header: bytes, dialect: Dialect) -> str:
    """Return a row of CSV, of a table with a ``header``, with some cells anew."""
    lines = (header.decode("utf-8", "surrogateescape").lstrip(BOM), row.lstrip(BOM))
    names, values = (next(dialect.cells(io.StringIO(line, newline=""))) for line in lines)
    for column, text in cells.items():
        values[names.index(column)] = text
    end, separator = row[len(row.rstrip("\r\n")) :], dialect.separator or ","
    if not dialect.quote:
        return separator.join(values) + end
    sink = io.StringIO(newline="")
    csv.writer(sink, delimiter=separator, lineterminator=end).writerow(values)
    return sink.getvalue()
