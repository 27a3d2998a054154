"""A table written again without some of its rows, or with a weight for each row; all else stays.

Of CSV, TSV and JSON Lines the rows that stay keep their bytes: quotes, line ends, the BOM. Of
Parquet the schema, the metadata, the compression of each column and the order stay, and of a folder
that Hugging Face ``datasets`` saved its Arrow schema. What was packed is packed again, and of a
folder every file keeps its name. One row, or one row group, is in memory at a time.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import json
import os
import shutil
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mamushi.artifacts import tabular
from mamushi.artifacts.files import atomic, read_json
from mamushi.data import readers
from mamushi.errors import UserError

WEIGHT = "weight"
"""The column with the weight of a row: 0 for what is removed, else 1."""
INFO = "dataset_info.json"
"""Beside ``tabular.STATE`` in a folder that ``datasets`` saved."""


@dataclass
class Removal:
    """Which rows go, and what was found of them."""

    ids: Collection[str]
    column: str | None
    """The column with the id; None: the number of the row, from 1."""
    read: int = 0
    removed: int = 0
    unnamed: int = 0
    """Rows without an id, which stay."""
    found: set[str] = field(default_factory=set)

    def takes(self, value: Any) -> bool:
        """Return whether the next row goes, whose cell in ``column`` is ``value``."""
        self.read += 1
        name = str(self.read) if self.column is None else readers.name_of(value)
        self.unnamed += name is None
        if name is None or name not in self.ids:
            return False
        self.removed += 1
        self.found.add(name)
        return True

    @property
    def columns(self) -> list[str]:
        """The columns that are read for it."""
        return [] if self.column is None else [self.column]


@dataclass(frozen=True)
class Targets:
    """What is written: a table of the rows that stay and, if wanted, one of those that go; or with
    ``weights`` all rows in the first."""

    kept: Path
    removed: Path | None = None
    weights: bool = False

    @property
    def all(self) -> list[Path]:
        return [path for path in (self.kept, self.removed) if path is not None]


def ending(path: Path) -> tuple[str, str]:
    """Return the format of a file by its name and how it is packed, such as ``csv`` and ``.gz``.

    Raises ``UserError`` for a format that is not known.
    """
    kind, packing = tabular.format_of(path), path.suffix.lower()
    if kind is None:
        what = f"cannot tell the format from the ending {''.join(path.suffixes[-2:])!r}"
        raise UserError(what, where=path, do=tabular.KNOWN)
    return kind, packing if packing in tabular.PACKED else ""


def tables(data: Path) -> list[Path]:
    """Return the files of a table, in the order of their rows: itself, or those of a folder.

    Raises ``UserError`` when there is none, and for a folder with several formats.
    """
    if data.is_file():
        return [data]
    if not data.is_dir():
        raise UserError("no such file or folder", where=data, do="check the path")
    if (data / tabular.STATE).is_file():
        # In the order in which they are ranked, which ids that are row numbers count by.
        return tabular.find(data)
    found: dict[str | None, list[Path]] = {}
    for path in _files(data):
        saved = (path.parent / tabular.STATE).is_file()
        # Further Arrow files of such a folder are the caches of `datasets`.
        if not (saved and path.suffix == ".arrow" and path not in tabular.find(path.parent)):
            found.setdefault(tabular.format_of(path), []).append(path)
    found.pop(None, None)
    if len(found) != 1:
        kinds = f"files of several formats ({', '.join(map(str, found))})" if found else "no table"
        raise UserError(kinds, where=data, do="give a folder with the shards of one table")
    return next(iter(found.values()))


def _files(folder: Path) -> list[Path]:
    """Return all files in it that are not hidden, by name."""
    paths = (path for path in folder.rglob("*") if path.is_file())
    return sorted(p for p in paths if not any(x[0] == "." for x in p.relative_to(folder).parts))


def rows(data: Path, columns: Mapping[str, str]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Iterate over the file and the cells of every row; ``columns`` has the column of each cell.

    Raises ``UserError`` as ``rewrite``.
    """
    for path in tables(data):
        for _, cells in readers.rows(path, list(columns.values())):
            yield path, {name: cells.get(column) for name, column in columns.items()}


def rewrite(
    data: Path, targets: Targets, removal: Removal, check: Callable[[], None] = lambda: None
) -> None:
    """Write ``data``, a file or a folder, as ``targets`` say; ``removal`` counts.

    Whole or not at all: also when ``check``, which is called with everything counted, raises.
    Raises ``UserError`` for a file that is missing or damaged, a missing column, a target that is
    the source, a folder that exists, and a column ``weight`` that is there already.
    """
    for path in targets.all:
        if path.exists() and (path.is_dir() or data.is_dir() or path.samefile(data)):
            raise UserError("exists already", where=path, do="remove it or name another one")
        if data.is_file() and ending(path) != ending(data):
            kinds = " and ".join(f".{''.join(ending(each))}" for each in (path, data))
            raise UserError(f"the endings {kinds} differ", where=path, do="keep the format")
    files = tables(data)
    with contextlib.ExitStack() as parts:
        new = whole_folder if data.is_dir() else atomic
        written = [parts.enter_context(new(path)) for path in targets.all]
        for path in files:
            place = path.relative_to(data)
            outs = [to / place if data.is_dir() else to for to in written]
            for out in outs:
                out.parent.mkdir(parents=True, exist_ok=True)
            write = _lines if tabular.format_of(path) in ("csv", "tsv", "jsonl") else _columns
            write(path, outs, removal, targets.weights)
        if removal.read == removal.unnamed > 0:
            do = "name the column with the ids"
            raise UserError(f"no column {removal.column!r}", where=data, do=do)
        check()
        if data.is_dir():
            for folder in written:
                _copy_others(data, folder, files, targets.weights)


@contextlib.contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Open a folder beside ``path`` that becomes it when the block succeeds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    part.mkdir()
    try:
        yield part
        part.rename(path)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _check_no_weights(path: Path, names: Collection[str]) -> None:
    if WEIGHT in names:
        raise UserError(f"has a column {WEIGHT!r} already", where=path, do="rename it")


# Lines --------------------------------------------------------------------------------------------


def _lines(path: Path, outs: Sequence[Path], removal: Removal, weights: bool) -> None:
    kind, packing = ending(path)
    with contextlib.ExitStack() as files:
        handles = [files.enter_context(_packed(out, packing, path.stem)) for out in outs]
        for raw, cells, _, is_header in readers.records(path, removal.columns, strict=False):
            is_row = cells is not None and not is_header
            gone = is_row and removal.takes((cells or {}).get(removal.column or ""))
            if weights and cells is not None:
                if is_header or (kind == "jsonl" and cells.get(WEIGHT) is not None):
                    _check_no_weights(path, cells)
                raw = _weighted(raw, kind, WEIGHT if is_header else "0" if gone else "1")
            if is_header:
                for handle in handles:
                    handle.write(raw)
            elif not gone or weights:
                handles[0].write(raw)
            elif len(handles) > 1:
                handles[1].write(raw)


def _weighted(raw: bytes, kind: str, weight: str) -> bytes:
    """Return a line with one more cell, and the same end."""
    if separator := readers.SEPARATORS.get(kind):
        body = raw.rstrip(b"\r\n")
        return body + f"{separator}{weight}".encode() + raw[len(body) :]
    head, _, tail = raw.rpartition(b"}")
    comma = "" if head.endswith(b"{") else ", "
    return head + f'{comma}"{WEIGHT}": {weight}}}'.encode() + tail


@contextlib.contextmanager
def _packed(path: Path, packing: str, member: str) -> Iterator[Any]:
    """Open a file to write; the same content gives the same bytes. ``member``: its name in a zip
    archive."""
    with contextlib.ExitStack() as files:
        if packing == ".gz":
            raw = files.enter_context(path.open("wb"))
            yield files.enter_context(gzip.GzipFile("", "wb", fileobj=raw, mtime=0))
        elif packing == ".zst":
            yield files.enter_context(pa.output_stream(str(path), compression="zstd"))
        elif packing == ".zip":
            archive = files.enter_context(zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED))
            about = zipfile.ZipInfo(member)
            about.compress_type = zipfile.ZIP_DEFLATED
            yield files.enter_context(archive.open(about, "w", force_zip64=True))
        else:
            yield files.enter_context(path.open("wb"))


# Columns ------------------------------------------------------------------------------------------


def _columns(path: Path, outs: Sequence[Path], removal: Removal, weights: bool) -> None:
    with readers.opened_columns(path) as (schema, groups), contextlib.ExitStack() as files:
        readers.check_columns(path, schema.names, removal.columns)
        if weights:
            _check_no_weights(path, schema.names)
            schema = schema.append(pa.field(WEIGHT, pa.float32()))
        new: Callable[[str, pa.Schema], Any]
        if tabular.format_of(path) == "parquet":
            options = _parquet_options(path)
            new = lambda to, schema: pq.ParquetWriter(to, schema, **options)  # noqa: E731
        else:
            new = pa.ipc.new_file if readers.has_footer(path) else pa.ipc.new_stream
        writers = [files.enter_context(new(str(out), schema)) for out in outs]
        for table in groups(None):
            ids = table[removal.column].to_pylist() if removal.columns else [None] * len(table)
            gone = [removal.takes(name) for name in ids]
            if weights:
                column = pa.array([0.0 if one else 1.0 for one in gone], pa.float32())
                parts = [table.append_column(WEIGHT, column)]
            else:
                mask = pa.array(gone, pa.bool_())
                parts = [table.filter(pc.invert(mask)), table.filter(mask)]
            for writer, part in zip(writers, parts, strict=False):
                if len(part):
                    # In one row group, or record batch, as it was read.
                    writer.write_table(part, len(part))


def _parquet_options(path: Path) -> dict[str, Any]:
    """Return the options by which the file was written, as far as it tells."""
    with pq.ParquetFile(path) as source:
        about, arrow, schema = source.metadata, source.schema_arrow, source.schema
    columns = [about.schema.column(i) for i in range(about.num_columns)]
    options: dict[str, Any] = {
        # Old timestamps and decimals have other physical types than those written today.
        "use_deprecated_int96_timestamps": any(c.physical_type == "INT96" for c in columns),
        "store_decimal_as_integer": any(
            c.logical_type.type == "DECIMAL" and c.physical_type.startswith("INT") for c in columns
        ),
        "store_schema": b"ARROW:schema" in (about.metadata or {}),
        "version": about.format_version,
    }
    if about.num_row_groups:
        first = [about.row_group(0).column(i) for i in range(about.num_columns)]
        compression = {c.path_in_schema: c.compression.lower() for c in first}
        options |= {
            "compression": {n: c.replace("uncompressed", "none") for n, c in compression.items()},
            "use_dictionary": [c.path_in_schema for c in first if c.has_dictionary_page] or False,
            "write_statistics": [c.path_in_schema for c in first if c.is_stats_set] or False,
        }
    for compliant in (True, False):
        options["use_compliant_nested_type"] = compliant
        sink = io.BytesIO()
        with pq.ParquetWriter(sink, arrow, **options):
            pass
        if pq.ParquetFile(io.BytesIO(sink.getvalue())).schema.equals(schema):
            break
    return options


# Folders ------------------------------------------------------------------------------------------


def _copy_others(data: Path, to: Path, files: Sequence[Path], weights: bool) -> None:
    """Copy the other files of a folder as they are, but for what tells ``datasets`` of the rows."""
    saved = {path.parent for path in files if (path.parent / tabular.STATE).exists()}
    for path in _files(data):
        if path not in files and not (path.parent in saved and path.suffix == ".arrow"):
            copy = to / path.relative_to(data)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    for folder in saved:
        _update_state(to / folder.relative_to(data), weights)


def _update_state(folder: Path, weights: bool) -> None:
    """Write number of rows, columns and fingerprint of a folder that ``datasets`` opens."""
    state, info = read_json(folder / tabular.STATE), read_json(folder / INFO)
    rows = size = 0
    digest = hashlib.sha256(str(state["_fingerprint"]).encode())
    for path in tabular.find(folder):
        with pa.memory_map(str(path)) as content:
            rows += sum(batch.num_rows for batch in pa.ipc.open_stream(content))
            size += content.size()
        digest.update(hashlib.file_digest(path.open("rb"), "sha256").digest())
    # It names the content to the caches of `datasets`.
    state["_fingerprint"] = digest.hexdigest()[:16]
    if split := (info.get("splits") or {}).get(state.get("_split")):
        split |= {"num_examples": rows, "num_bytes": size}
        split.pop("shard_lengths", None)
    if weights:
        info["features"][WEIGHT] = {"dtype": "float32", "_type": "Value"}
        if state["_format_columns"]:
            state["_format_columns"].append(WEIGHT)
    for name, content in ((tabular.STATE, state), (INFO, info)):
        (folder / name).write_text(json.dumps(content, indent=2), encoding="utf-8")
