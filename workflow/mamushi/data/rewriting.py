"""A table written again without some of its rows, or without parts of its texts; all else stays.

Of CSV, TSV and JSON Lines the rows that stay keep their bytes: quotes, line ends, the BOM. Of
Parquet the schema, the metadata, the compression of each column and the order stay, and of a folder
that Hugging Face ``datasets`` saved its Arrow schema. What was packed is packed again, and of a
folder every file keeps its name. One row, or one row group, is in memory at a time.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
import shutil
import zipfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from mamushi.artifacts import tabular
from mamushi.artifacts.files import atomic, read_json, sha256, writable
from mamushi.data import cutting, readers
from mamushi.data.duplicates import key
from mamushi.data.windows import Span
from mamushi.errors import UserError

INFO = "dataset_info.json"
"""Beside ``tabular.STATE`` in a folder that ``datasets`` saved."""


@dataclass
class Removal:
    """Which rows go, or what of their texts, and what was found of them."""

    ids: Collection[str]
    column: str | None
    """The column with the id; None: the number of the row, from 1."""
    read: int = 0
    removed: int = 0
    unnamed: int = 0
    """Rows without an id, which stay."""
    found: set[str] = field(default_factory=set)
    twice: str | None = None
    """The first of the ids that several rows have."""
    text: str | None = None
    """The column with the text, where not rows go but"""
    windows: Mapping[str, Mapping[Span, str | None]] = field(default_factory=dict)
    """parts of it, by id, each with what it was when it was ranked, if that is known."""
    cut: dict[str, int] = field(default_factory=lambda: {"rows": 0, "characters": 0})
    """Rows of which something was cut and that stay, and the characters that were cut."""

    def takes(self, value: Any) -> bool:
        """Return whether the next row goes, whose cell in ``column`` is ``value``, and count it."""
        self.read += 1
        name = str(self.read) if self.column is None else readers.name_of(value)
        self.unnamed += name is None
        if name is None or name not in self.ids:
            return False
        self.removed += 1
        if name in self.found:
            self.twice = self.twice or name
        self.found.add(name)
        return True

    def of(self, cells: Mapping[str, Any], place: object) -> set[int] | None:
        """Return the places of characters that are cut out of the text of the next row, none of one
        that stays as it is; None where the row goes. Raises ``UserError`` for a text that is not
        the one that was ranked."""
        value = cells.get(self.column or "")
        if not self.takes(value):
            return set()
        if self.text is None:
            return None
        name = str(self.read) if self.column is None else str(readers.name_of(value))
        text, windows = str(cells.get(self.text)), self.windows[name]
        for (start, stop), was in windows.items():
            if was is not None and key(text[start:stop]) != key(was):
                what = f"the text of {name!r} is another one now, and would be cut elsewhere"
                do = "give the table that was ranked, or rank again"
                raise UserError(what, where=place, do=do)
        gone = {at for span in windows for at in range(*span)}
        self.cut["characters"] += len(gone)
        if not cutting.without(text, gone).strip():
            return None
        self.removed, self.cut["rows"] = self.removed - 1, self.cut["rows"] + 1
        return gone

    @property
    def columns(self) -> list[str]:
        """Return the columns that are read for it."""
        return [name for name in (self.column, self.text) if name is not None]

    def check(self, data: Path) -> None:
        """Raise ``UserError`` where nothing was found, or an id in several rows: it is a list of
        another table."""
        if not self.found:
            where = "number of a row" if self.column is None else f"column {self.column!r}"
            what = f"none of its {len(self.ids)} ids is there ({where})"
            do = "name the column with --id, or give the table that was ranked"
            raise UserError(what, where=data, do=do)
        if self.twice is not None:
            what = f"several rows have the id {self.twice!r} of the list"
            do = "give every row an id of its own, or name their column with --id"
            raise UserError(what, where=data, do=do)


def refuse_existing(out: Path) -> None:
    """Raise ``UserError`` where something stands already: it may be the user's own."""
    if os.path.lexists(out):
        raise UserError("exists already", where=out, do="name another one in --out")


def tables(data: Path) -> list[Path]:
    """Return the files of a table, in the order of their rows: itself, or those of a folder.

    Raises ``UserError`` as ``tabular.find``, and for a pattern, which has no one place to write to.
    """
    if not data.exists():
        raise UserError("no such file or folder", where=data, do="check the path")
    return tabular.find(data)


def rewrite(data: Path, out: Path, removal: Removal) -> None:
    """Write ``data``, a file or a folder, to ``out`` without what ``removal`` takes; it counts.

    Whole or not at all. Raises ``UserError`` for a file that is missing or damaged, a missing
    column, a target that exists, and when nothing is to be removed.
    """
    files = tables(data)
    refuse_existing(out)
    form, kept = ([tabular.format_of(p), _packing(p)] for p in (data, out))
    if data.is_file() and form != kept:
        what = f"the endings of {data.name} and {out.name} differ"
        raise UserError(what, where=out, do="keep the format")
    with whole_folder(out) if data.is_dir() else atomic(out) as part:
        for path in files:
            to = part / path.name if data.is_dir() else part
            (_columns if tabular.format_of(path) in readers.COLUMNAR else _lines)(path, to, removal)
        removal.check(data)
        # Of a folder the files beside the table too; not the caches of `datasets`.
        for path in data.iterdir() if data.is_dir() else ():
            if path.is_file() and path.name[0] not in "._" and tabular.format_of(path) is None:
                shutil.copyfile(path, part / path.name)
        if (data / tabular.STATE).is_file():
            _update_state(part)


@contextlib.contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Open a folder beside ``path`` that becomes it when the block succeeds."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    with writable(path):
        part.mkdir()
    try:
        yield part
        part.rename(path)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _packing(path: Path) -> str:
    return path.suffix.lower() if path.suffix.lower() in tabular.PACKED else ""


def _lines(path: Path, out: Path, removal: Removal) -> None:
    separator, number = readers.SEPARATORS.get(tabular.format_of(path) or ""), 0
    with _packed(out, _packing(path), path.stem) as handle:
        for raw, cells, place, is_header in readers.records(path, removal.columns, strict=False):
            gone = set() if cells is None or is_header else removal.of(cells, place)
            if is_header and separator and removal.text:
                number = cutting.place_of(raw, separator, removal.text)
            if gone:
                row = raw.decode("utf-8", "surrogateescape")
                if separator is None:
                    row = cutting.of_line(row, removal.text or "", gone)
                else:
                    row = cutting.of_row(row, separator, number, gone)
                raw = row.encode("utf-8", "surrogateescape")
            if gone is not None:
                handle.write(raw)


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


def _columns(path: Path, out: Path, removal: Removal) -> None:
    with readers.opened_columns(path) as (schema, groups):
        readers.check_columns(path, schema.names, removal.columns)
        if tabular.format_of(path) == "parquet":
            writer = pq.ParquetWriter(str(out), schema, **_parquet_options(path))
        else:
            writer = pa.ipc.new_stream(str(out), schema)
        with writer:
            for table in groups(None):
                found = table.select(removal.columns).to_pylist() or [{}] * len(table)
                gone = [removal.of(cells, path) for cells in found]
                if any(gone):
                    at = table.column_names.index(removal.text)
                    texts = zip((cells[removal.text] for cells in found), gone, strict=True)
                    left = [cutting.without(text, own) if own else text for text, own in texts]
                    kind = table.schema.field(at)
                    table = table.set_column(at, kind, pa.array(left, kind.type))
                stay = table.filter(pa.array([own is not None for own in gone], pa.bool_()))
                if len(stay):
                    # In one row group, or record batch, as it was read.
                    writer.write_table(stay, len(stay))


def _parquet_options(path: Path) -> dict[str, Any]:
    """Return the options by which the file was written, as far as it tells."""
    with pq.ParquetFile(path) as source:
        about = source.metadata
    columns = [about.schema.column(i) for i in range(about.num_columns)]
    options: dict[str, Any] = {
        # Old timestamps and decimals have other physical types than those written today.
        "use_deprecated_int96_timestamps": any(c.physical_type == "INT96" for c in columns),
        "store_decimal_as_integer": any(
            c.logical_type.type == "DECIMAL" and c.physical_type.startswith("INT") for c in columns
        ),
        "store_schema": b"ARROW:schema" in (about.metadata or {}),
        "version": about.format_version,
        "use_compliant_nested_type": not any(".list.item" in c.path for c in columns),
    }
    if about.num_row_groups:
        first = [about.row_group(0).column(i) for i in range(about.num_columns)]
        compression = {c.path_in_schema: c.compression.lower() for c in first}
        options |= {
            "compression": {n: c.replace("uncompressed", "none") for n, c in compression.items()},
            "use_dictionary": [c.path_in_schema for c in first if c.has_dictionary_page] or False,
            "write_statistics": [c.path_in_schema for c in first if c.is_stats_set] or False,
        }
    return options


def _update_state(folder: Path) -> None:
    """Write number of rows and fingerprint of a folder that ``datasets`` opens."""
    state, info = read_json(folder / tabular.STATE), read_json(folder / INFO)
    rows = size = 0
    digest = hashlib.sha256(str(state["_fingerprint"]).encode())
    for path in tabular.find(folder):
        with pa.memory_map(str(path)) as content:
            rows += sum(batch.num_rows for batch in pa.ipc.open_stream(content))
            size += content.size()
        digest.update(bytes.fromhex(sha256(path)))
    # It names the content to the caches of `datasets`.
    state["_fingerprint"] = digest.hexdigest()[:16]
    if split := (info.get("splits") or {}).get(state.get("_split")):
        split |= {"num_examples": rows, "num_bytes": size}
        split.pop("shard_lengths", None)
    for name, content in ((tabular.STATE, state), (INFO, info)):
        (folder / name).write_text(json.dumps(content, indent=2), encoding="utf-8")
