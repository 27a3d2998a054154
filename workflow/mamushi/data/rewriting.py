"""A table written again without some of its rows, or without parts of its texts; all else stays.

Of CSV, TSV and JSON Lines the rows that stay keep their bytes: quotes, line ends, the BOM. Parquet
and Arrow stay as ``rewriting_columns`` says. What was packed is packed again, but for zip, and of a
folder every file keeps its name. One row, or one row group, is in memory at a time. What was
written is read again before it gets its name: its rows are those that were read without those that
go. Of a folder, each file is written by itself, and stays when the command is killed.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from mamushi.data import cutting, readers, rewriting_columns
from mamushi.data.matching import RowRemoval
from mamushi.data.opening import open_unpacked
from mamushi.errors import UserError
from mamushi.io import tabular
from mamushi.io.files import (
    atomic,
    part_of,
    read_json,
    read_plain_json,
    sha256,
    sweep,
    writable,
    write_json,
)
from mamushi.running.locks import exclusive

DONE = ".done"
"""In a folder that is being written: a file for each that is finished, which says what it is."""
INFO = "dataset_info.json"
"""Beside ``tabular.STATE`` in a folder that ``datasets`` saved."""


@dataclass(frozen=True)
class Rewritten:
    """What was read and what was written of a table."""

    data: Path
    out: Path
    read: dict[str, str]
    """SHA-256 of each file by its name: of the bytes from which its rows were read."""
    written: dict[str, str]
    """And of each that was written."""
    rows_read: int
    rows_written: int


def refuse_existing(out: Path) -> None:
    """Raise ``UserError`` where something stands already: it may be the user's own."""
    if os.path.lexists(out):
        raise UserError("exists already", where=out, do="name another one in --out")


def table_files(data: Path) -> list[Path]:
    """Return the files of a table, in the order of their rows: itself, or those of a folder.

    Raises ``UserError`` as ``tabular.find``, and for a pattern, which has no one place to write to.
    """
    if not data.exists():
        if "*" in data.name:
            do = "give the folder, or one file after the other"
            raise UserError("is a pattern, which has no one place to write to", where=data, do=do)
        raise UserError("no such file or folder", where=data, do="check the path")
    return tabular.find(data)


def rewrite(
    data: Path,
    out: Path,
    removal: RowRemoval,
    *,
    quote: bool = True,
    record: Callable[[Rewritten], None] | None = None,
    request: object = None,
) -> Rewritten:
    """Write ``data``, a file or a folder, to ``out`` without what ``removal`` takes; it counts.
    Without ``quote``, a `"` of CSV and TSV is a character as any other.

    Whole or not at all; ``record`` is called before the result gets its name. Of a folder, what a
    killed process wrote for the same ``request`` is taken over, file by file. Raises ``UserError``
    for a file that is missing, damaged or written meanwhile, a missing column, a target that
    exists, and when nothing is to be removed; ``RuntimeError`` where what was written is not what
    was read without what goes.
    """
    files = table_files(data)
    refuse_existing(out)
    if data.is_dir() and out.resolve().is_relative_to(data.resolve()):
        problem = "lies in the folder of the data, which would hold it from then on"
        raise UserError(problem, where=out, do="name a place outside of it in --out")
    written_as = Path(tabular.written_name(data))
    form, kept = ([tabular.format_of(p), tabular.packing_of(p)] for p in (written_as, out))
    if data.is_file() and form != kept:
        problem = f"the endings of {data.name} and {out.name} differ"
        raise UserError(problem, where=out, do=f"name it as in {written_as}")
    start, is_folder = removal.read, data.is_dir()
    read, written, rows = dict[str, str](), dict[str, str](), 0
    with resumed_folder(out, request) if is_folder else atomic(out) as part:
        for path in files:
            name = tabular.written_name(path) if is_folder else out.name
            if is_folder:
                done = _of_folder(path, part / name, removal, quote)
            else:
                done = _of_file(path, part, removal, quote)
            removal.add(done["rows_read"], done["counted"])
            read[path.name], written[name] = done["read"], done["written"]
            rows += done["rows_written"]
        removal.check(data)
        if data.is_dir():
            _copy_rest(data, files, part)
            if (data / tabular.STATE).is_file():
                _update_state(part)
                written = {path.name: sha256(part / path.name) for path in files}
            if table_files(data) != files:
                do = "run the same command again when nothing writes to it"
                raise UserError("has changed while it was read", where=data, do=do)
        result = Rewritten(data, out, read, written, removal.read - start, rows)
        if record is not None:
            record(result)
    return result


def _of_folder(path: Path, out: Path, removal: RowRemoval, quote: bool) -> dict[str, Any]:
    """Write one file of a folder, unless a command did that was killed, and what was read and
    written is as it was then. Return what is known of it."""
    log = out.parent / DONE / f"{path.name}.json"
    with contextlib.suppress(UserError, KeyError, TypeError):
        done, before = read_json(log), removal.read
        files = {"before": before, "read": sha256(path), "written": sha256(out)}
        if all(done[name] == value for name, value in files.items()):
            return done
    with atomic(out) as part:
        done = _of_file(path, part, removal, quote)
    write_json(log, done)
    return done


def _of_file(path: Path, out: Path, removal: RowRemoval, quote: bool) -> dict[str, Any]:
    """Write one file, and return what was read, written and counted."""
    counted, digests = removal.begun(), dict[str, str]()
    rows, digest = _written(path, out, counted, quote, digests)
    n, gone = counted.read - removal.read, counted.removed
    if rows != n - gone:
        problem = f"{n} rows were read and {gone} go, but {rows} were written"
        raise RuntimeError(f"{path}: {problem}; nothing was kept of it, please report this")
    counts = {name: getattr(counted, name) for name in removal.counted}
    return {
        **{"before": removal.read, "read": digests[path.name], "written": digest},
        **{"rows_read": n, "rows_written": rows},
        "counted": {**counts, "seen_ids": sorted(counted.seen_ids)},
    }


def _written(
    path: Path, out: Path, removal: RowRemoval, quote: bool, digests: dict[str, str]
) -> tuple[int, str]:
    """Write one file again. Return the rows that are in it by what was written, and its SHA-256."""
    if tabular.format_of(path) in readers.COLUMNAR:
        return rewriting_columns.write_columns(path, out, removal, digests)
    return _lines(path, out, removal, quote, digests)


def _copy_rest(data: Path, files: list[Path], part: Path) -> None:
    """Copy what lies beside the files of a table; not the caches of `datasets`."""
    listed = {*files}
    for path in sorted(data.iterdir()):
        if path in listed or path.name[0] in "._":
            continue
        if path.is_dir():
            shutil.copytree(path, part / path.name, symlinks=True)
        elif not tabular.is_part(path):
            shutil.copyfile(path, part / path.name)


@contextlib.contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Open a folder beside ``path`` that becomes it when the block succeeds. The next writer of
    ``path`` removes what a killed process left."""
    part = part_of(path)
    with writable(path):
        sweep(path)
        part.mkdir()
    try:
        yield part
        _flush(part)
        part.rename(path)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _flush(folder: Path) -> None:
    for file in folder.rglob("*"):
        if file.is_file() and not file.is_symlink():
            with file.open("rb+") as handle:
                os.fsync(handle.fileno())


@contextlib.contextmanager
def resumed_folder(path: Path, request: object) -> Iterator[Path]:
    """Do as ``whole_folder``, in a place that all commands with the same ``request`` share; what is
    in it stays when they are stopped. Raises ``UserError`` where one of them is at work."""
    key = hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()[:12]
    part = path.with_name(f".{path.name}.{key}.part")
    with writable(path):
        (part / DONE).mkdir(parents=True, exist_ok=True)
    do = "wait until that has ended"
    busy = UserError("the same command writes it now", where=path, do=do)
    with exclusive(part / DONE / ".lock", f"writes {path}", busy):
        try:
            yield part
        except Exception:
            shutil.rmtree(part, ignore_errors=True)
            raise
        shutil.rmtree(part / DONE)
    _flush(part)
    part.rename(path)
    # What is left of other requests for the same path is of no use any more.
    pattern = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{12}}\.part")
    for stale in filter(lambda file: pattern.fullmatch(file.name), path.parent.iterdir()):
        shutil.rmtree(stale, ignore_errors=True)


def _lines(
    path: Path, out: Path, removal: RowRemoval, quote: bool, digests: dict[str, str]
) -> tuple[int, str]:
    """Write a file of lines again, and compare each byte that was written with those that were read
    of the records that stay."""
    form, rows, stays, again = tabular.format_of(path), 0, hashlib.sha256(), dict[str, str]()
    separator = readers.SEPARATORS.get(form or "")
    header, written, packing = b"", False, tabular.packing_of(path)
    source = readers.records(path, removal.columns, strict=False, quote=quote, digests=digests)
    with _packed(out, packing) as handle:
        for raw, cells, place, is_header in source:
            gone = set() if cells is None or is_header else removal.of(cells, place)
            header = raw if is_header else header
            if gone:
                row = raw.decode("utf-8", "surrogateescape")
                if form == "txt":
                    row = cutting.without_characters(row, gone)
                elif separator is None:
                    row = cutting.of_line(row, removal.text or "", gone)
                else:
                    number = cutting.place_of(header, separator, removal.text or "", quote=quote)
                    row = cutting.of_row(row, separator, number, gone, quote=quote)
                raw = row.encode("utf-8", "surrogateescape")
            if gone is not None:
                if form == "json" and cells is not None:
                    # In an array the comma stands before all that have another before them.
                    raw = raw if written else raw.replace(b",", b"", raw.lstrip()[:1] == b",")
                    written = True
                stays.update(raw)
                rows += cells is not None and not is_header
                handle.write(raw)
    with open_unpacked(out, again, like=path) as handle:
        if hashlib.file_digest(handle, "sha256").digest() != stays.digest():  # type: ignore[arg-type]
            raise RuntimeError(f"{path}: other bytes were written than stay; please report this")
    return rows, again[out.name]


@contextlib.contextmanager
def _packed(path: Path, packing: str) -> Iterator[Any]:
    """Open a file to write; the same content gives the same bytes."""
    with contextlib.ExitStack() as files:
        raw = files.enter_context(path.open("wb"))
        if packing == ".gz":
            yield files.enter_context(gzip.GzipFile("", "wb", fileobj=raw, mtime=0))
        elif packing == ".zst":
            yield files.enter_context(pa.CompressedOutputStream(raw, "zstd"))
        else:
            yield raw


def _update_state(folder: Path) -> None:
    """Write number of rows and fingerprint of a folder that ``datasets`` opens."""
    state, info = read_plain_json(folder / tabular.STATE), read_plain_json(folder / INFO)
    rows = size = 0
    digest = hashlib.sha256(str(state["_fingerprint"]).encode())
    for path in tabular.find(folder):
        with readers.opened_columns(path) as (_, batches):
            rows += sum(len(batch) for batch in batches([]))
        size += path.stat().st_size
        digest.update(bytes.fromhex(sha256(path)))
    # It names the content to the caches of `datasets`.
    state["_fingerprint"] = digest.hexdigest()[:16]
    if split := (info.get("splits") or {}).get(state.get("_split")):
        split |= {"num_examples": rows, "num_bytes": size}
        split.pop("shard_lengths", None)
    for name, content in ((tabular.STATE, state), (INFO, info)):
        (folder / name).write_text(json.dumps(content, indent=2), encoding="utf-8")
