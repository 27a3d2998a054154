"""A table written again without some of its rows, or with a weight for each row; all else stays.

Of CSV, TSV and JSON Lines the rows that stay keep their bytes: quotes, line ends, the BOM. Of
Parquet the schema, the metadata, the compression of each column and the order stay, and of a folder
that Hugging Face ``datasets`` saved its Arrow schema. What was packed is packed again, and of a
folder every file keeps its name. One row, or one row group, is in memory at a time.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import hashlib
import io
import json
import os
import shutil
import sys
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mamushi.artifacts import shards
from mamushi.artifacts.files import atomic, read_json
from mamushi.artifacts.shards import FORMATS, PACKED
from mamushi.data import readers
from mamushi.errors import UserError


def _endings(kind: str) -> tuple[str, ...]:
    return tuple(ending for ending, of in FORMATS.items() if of == kind)


DELIMITERS = {end: char for kind, char in readers.SEPARATORS.items() for end in _endings(kind)}
JSON_LINES, PARQUET = _endings("jsonl"), _endings("parquet")
ARROW = ".arrow"
WEIGHT = "weight"
"""The column with the weight of a row: 0 for what is removed, else 1."""
STATE, INFO = "state.json", "dataset_info.json"
"""Files of a folder that ``datasets`` saved."""

HEADER, BLANK, ROW = "header", "blank", "row"
Record = tuple[bytes, str, Sequence[Any]]
"""The bytes of a line or row of a file, what it is, and the cells of the wanted columns."""


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
        """Whether the next row goes, whose cell in ``column`` is ``value``."""
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

    def within(self, place: Path) -> Targets:
        """The same for a file of the folders that these are."""
        return Targets(self.kept / place, self.removed and self.removed / place, self.weights)

    @property
    def all(self) -> list[Path]:
        return [path for path in (self.kept, self.removed) if path is not None]


def ending(path: Path) -> tuple[str, str]:
    """How the name ends, in lower case: with the format, and how it is packed: ``.csv``, ``.gz``.

    Raises ``UserError`` for a format that is not known.
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packing = suffixes.pop() if suffixes and suffixes[-1] in PACKED else ""
    kind = suffixes[-1] if suffixes else ""
    lines = kind in DELIMITERS or kind in JSON_LINES
    if not lines and (packing or kind not in (*PARQUET, ARROW)):
        raise UserError(
            f"cannot tell the format from the ending {kind + packing!r}",
            where=path,
            do="known are .csv, .tsv and .jsonl, each also with .gz, .zst or .zip, .parquet, and "
            "folders of them or of datasets",
        )
    return kind, packing


def tables(data: Path) -> list[Path]:
    """The files of a table, in the order of their rows: itself, or those of a folder.

    Raises ``UserError`` when there is none, and for a folder with several formats.
    """
    if data.is_file():
        return [data]
    if not data.is_dir():
        raise UserError("no such file or folder", where=data, do="check the path")
    if (data / STATE).is_file():
        # In the order in which they are ranked, which ids that are row numbers count by.
        return shards.of(data)
    found: dict[str, list[Path]] = {}
    for path in _files(data):
        with contextlib.suppress(UserError):
            kind = ending(path)[0]
            if kind != ARROW or path.name in _shards(path.parent, path.name):
                found.setdefault(kind, []).append(path)
    if len(found) != 1:
        kinds = f"files of several formats ({', '.join(found)})" if found else "no table"
        raise UserError(kinds, where=data, do="give a folder with the shards of one table")
    return next(iter(found.values()))


def _files(folder: Path) -> list[Path]:
    """All files in it that are not hidden, by name."""
    paths = (path for path in folder.rglob("*") if path.is_file())
    return sorted(p for p in paths if not any(x[0] == "." for x in p.relative_to(folder).parts))


def _shards(folder: Path, *others: str) -> list[str]:
    """The names of the Arrow files of a folder that ``datasets`` saved, where further ones are its
    caches; ``others`` where it did not."""
    state = folder / STATE
    if not state.exists():
        return list(others)
    return [file["filename"] for file in read_json(state)["_data_files"]]


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
            kinds = " and ".join("".join(ending(each)) for each in (path, data))
            raise UserError(f"the endings {kinds} differ", where=path, do="keep the format")
    with contextlib.ExitStack() as parts:
        enter = parts.enter_context
        if data.is_dir():
            made = [enter(whole_folder(path)) for path in targets.all]
        else:
            made = [enter(atomic(path)) for path in targets.all]
        written = Targets(made[0], made[1] if len(made) > 1 else None, targets.weights)
        files = tables(data)
        for path in files:
            inside = written.within(path.relative_to(data)) if data.is_dir() else written
            for each in inside.all:
                each.parent.mkdir(parents=True, exist_ok=True)
            _rewrite(path, inside, removal)
        if removal.read == removal.unnamed > 0:
            raise UserError(
                f"no column {removal.column!r}", where=data, do="name the column with the ids"
            )
        check()
        if data.is_dir():
            _beside(data, files, written)


@contextlib.contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A folder beside ``path`` that becomes it when the block succeeds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    part.mkdir()
    try:
        yield part
        part.rename(path)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _rewrite(path: Path, targets: Targets, removal: Removal) -> None:
    kind, packing = ending(path)
    with _readable(path):
        if kind in PARQUET:
            _parquet(path, targets, removal)
        elif kind == ARROW:
            _arrow(path, targets, removal)
        else:
            _lines(path, kind, packing, targets, removal)


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    """What Arrow cannot read is one line."""
    try:
        yield
    except pa.ArrowException as error:
        raise UserError(f"damaged ({error})", where=path, do="make it again") from None


# Lines --------------------------------------------------------------------------------------------


def _lines(path: Path, kind: str, packing: str, targets: Targets, removal: Removal) -> None:
    with contextlib.ExitStack() as files:
        outs = [files.enter_context(_packing(to, packing, path)) for to in targets.all]
        # The header has the names of CSV; of JSON Lines every row has its own.
        named = kind in JSON_LINES
        names = [*removal.columns, WEIGHT] if named else removal.columns
        for raw, what, cells in records(path, names):
            gone = what == ROW and removal.takes(cells[0] if removal.columns else None)
            if targets.weights and what != BLANK:
                if WEIGHT in cells if what == HEADER else named and cells[-1] is not None:
                    raise _taken(path)
                weight = WEIGHT if what == HEADER else "0" if gone else "1"
                raw = _weighted(raw, kind, weight, path)
            if what == HEADER:
                for out in outs:
                    out.write(raw)
            elif not gone or targets.weights:
                outs[0].write(raw)
            elif targets.removed:
                outs[1].write(raw)


def _weighted(raw: bytes, kind: str, weight: str, path: Path) -> bytes:
    """A line with one more cell, and the same end."""
    if kind in DELIMITERS:
        body = raw.rstrip(b"\r\n")
        return body + f"{DELIMITERS[kind]}{weight}".encode() + raw[len(body) :]
    head, _, tail = raw.rpartition(b"}")
    comma = "" if head.endswith(b"{") else ", "
    return head + f'{comma}"{WEIGHT}": {weight}}}'.encode() + tail


def records(path: Path, columns: Sequence[str]) -> Iterator[Record]:
    """Each header, blank line and row of a CSV, TSV or JSON Lines file, packed or not.

    Their bytes, one after the other, are the file's. Raises ``UserError`` as ``readers.read`` does.
    """
    kind = ending(path)[0]
    with readers.opened(path) as handle:
        if kind in DELIMITERS:
            yield from _delimited(path, handle, DELIMITERS[kind], columns)
        else:
            yield from _json_lines(path, handle, columns)


def _delimited(
    path: Path, handle: IO[bytes], delimiter: str, columns: Sequence[str]
) -> Iterator[Record]:
    # What is not UTF-8 becomes surrogates here, and the same bytes again when it is written.
    text = io.TextIOWrapper(handle, "utf-8", errors="surrogateescape", newline="")
    taken: list[str] = []

    def lines() -> Iterator[str]:
        """The lines, which the parser takes until a row is whole."""
        for number, line in enumerate(text):
            taken.append(line)
            yield line if number else line.removeprefix("\ufeff")

    csv.field_size_limit(sys.maxsize)
    header: list[str] | None = None
    place, number = f"{path.name}, header", 0
    reader = csv.reader(lines(), delimiter=delimiter, strict=True)
    while True:
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise UserError(
                f"not well-formed after this ({error})",
                where=place,
                do="look for a missing quote or a truncated file",
            ) from None
        if cells is None:
            return
        raw = "".join(taken).encode("utf-8", "surrogateescape")
        taken.clear()
        if not cells:
            yield raw, BLANK, ()
        elif header is None:
            header = cells
            readers.check_columns(path, header, columns)
            positions = [header.index(name) for name in columns]
            yield raw, HEADER, header
        else:
            number += 1
            place = f"{path.name}, row {number} (line {reader.line_num})"
            if len(cells) != len(header):
                raise UserError(
                    f"{len(cells)} fields where the header has {len(header)}",
                    where=place,
                    do="look for a missing quote or a truncated file",
                )
            yield raw, ROW, [cells[position] for position in positions]


def _json_lines(path: Path, handle: IO[bytes], columns: Sequence[str]) -> Iterator[Record]:
    for number, line in enumerate(handle, 1):
        if not line.strip():
            yield line, BLANK, ()
            continue
        try:
            row = json.loads(line.decode("utf-8-sig"))
        except (ValueError, RecursionError) as error:
            raise UserError(
                f"not valid JSON ({error})",
                where=f"{path.name}, row {number}",
                do="one object a line, in UTF-8",
            ) from None
        if not isinstance(row, dict):
            raise UserError(
                "not a JSON object", where=f"{path.name}, row {number}", do="one object a line"
            )
        yield line, ROW, [row.get(name) for name in columns]


@contextlib.contextmanager
def _packing(path: Path, packing: str, like: Path) -> Iterator[Any]:
    """A file to write, packed as ``like`` is; the same content gives the same bytes."""
    if packing == ".gz":
        with path.open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as handle:
            yield handle
    elif packing == ".zst":
        with pa.output_stream(str(path), compression="zstd") as handle:
            yield handle
    elif packing == ".zip":
        member = zipfile.ZipInfo(like.stem)
        member.compress_type = zipfile.ZIP_DEFLATED
        with (
            zipfile.ZipFile(path, "w") as archive,
            archive.open(member, "w", force_zip64=True) as handle,
        ):
            yield handle
    else:
        with path.open("wb") as handle:
            yield handle


# Columns ------------------------------------------------------------------------------------------


def _parquet(path: Path, targets: Targets, removal: Removal) -> None:
    with pq.ParquetFile(path) as source, contextlib.ExitStack() as files:
        schema = _schema(path, source.schema_arrow, targets, removal)
        options = _options(source)
        outs = [files.enter_context(pq.ParquetWriter(to, schema, **options)) for to in targets.all]
        for group in range(source.num_row_groups):
            table = source.read_row_group(group)
            for out, part in zip(outs, _parts(table, targets, removal), strict=True):
                if len(part):
                    out.write_table(part, row_group_size=len(part))


def _options(source: pq.ParquetFile) -> dict[str, Any]:
    """How the file was written, as far as it tells."""
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
    }
    if about.num_row_groups:
        first = [about.row_group(0).column(i) for i in range(about.num_columns)]
        coded = [c.path_in_schema for c in first if c.has_dictionary_page]
        counted = [c.path_in_schema for c in first if c.is_stats_set]
        options |= {
            "compression": {
                c.path_in_schema: c.compression.lower().replace("uncompressed", "none")
                for c in first
            },
            "use_dictionary": coded or False,
            "write_statistics": counted or False,
        }
    for compliant in (True, False):
        options["use_compliant_nested_type"] = compliant
        sink = io.BytesIO()
        with pq.ParquetWriter(sink, source.schema_arrow, **options):
            pass
        if pq.ParquetFile(io.BytesIO(sink.getvalue())).schema.equals(source.schema):
            break
    return options


def _arrow(path: Path, targets: Targets, removal: Removal) -> None:
    with contextlib.ExitStack() as files:
        found, batches = _batches(path, files)
        schema = _schema(path, found, targets, removal)
        new = pa.ipc.new_file if _with_footer(path) else pa.ipc.new_stream
        outs = [files.enter_context(new(str(to), schema)) for to in targets.all]
        for batch in batches:
            table = pa.Table.from_batches([batch])
            for out, part in zip(outs, _parts(table, targets, removal), strict=True):
                out.write_table(part)


def _with_footer(path: Path) -> bool:
    """Whether an Arrow file is one with a footer; ``datasets`` writes streams."""
    with path.open("rb") as handle:
        return handle.read(6) == b"ARROW1"


def _batches(path: Path, files: contextlib.ExitStack) -> tuple[pa.Schema, Iterator[Any]]:
    """The schema and the record batches of an Arrow file, which ``files`` closes."""
    if not _with_footer(path):
        stream = files.enter_context(pa.ipc.open_stream(str(path)))
        return stream.schema, iter(stream)
    source = files.enter_context(pa.ipc.open_file(str(path)))
    return source.schema, map(source.get_batch, range(source.num_record_batches))


def _schema(path: Path, schema: pa.Schema, targets: Targets, removal: Removal) -> pa.Schema:
    readers.check_columns(path, schema.names, removal.columns)
    if not targets.weights:
        return schema
    if WEIGHT in schema.names:
        raise _taken(path)
    return schema.append(pa.field(WEIGHT, pa.float32()))


def _taken(path: Path) -> UserError:
    return UserError(f"has a column {WEIGHT!r} already", where=path, do="rename it")


def _parts(table: pa.Table, targets: Targets, removal: Removal) -> list[pa.Table]:
    """The rows of each target."""
    names = [None] * len(table) if removal.column is None else table[removal.column].to_pylist()
    gone = pa.array([removal.takes(name) for name in names], pa.bool_())
    if targets.weights:
        weights = pa.array([0.0 if one else 1.0 for one in gone.to_pylist()], pa.float32())
        return [table.append_column(WEIGHT, weights)]
    kept = [table.filter(pc.invert(gone))]
    return [*kept, table.filter(gone)] if targets.removed else kept


# Folders ------------------------------------------------------------------------------------------


def _beside(data: Path, shards: Sequence[Path], written: Targets) -> None:
    """The other files of a folder: as they are, but for what tells ``datasets`` of the rows."""
    saved = {path.parent for path in shards if (path.parent / STATE).exists()}
    for path in _files(data):
        place = path.relative_to(data)
        for to in written.all:
            if path in shards or (path.parent in saved and path.suffix == ARROW):
                continue
            (to / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, to / place)
    for folder in saved:
        for to in written.all:
            _told(to / folder.relative_to(data), written)


def _told(folder: Path, written: Targets) -> None:
    """Number of rows, columns and fingerprint of a folder that ``datasets`` opens."""
    state, info = read_json(folder / STATE), read_json(folder / INFO)
    rows = size = 0
    digest = hashlib.sha256(str(state["_fingerprint"]).encode())
    for name in _shards(folder):
        with pa.memory_map(str(folder / name)) as content:
            rows += sum(batch.num_rows for batch in pa.ipc.open_stream(content))
            size += content.size()
        digest.update(hashlib.file_digest((folder / name).open("rb"), "sha256").digest())
    # It names the content to the caches of `datasets`.
    state["_fingerprint"] = digest.hexdigest()[:16]
    if split := (info.get("splits") or {}).get(state.get("_split")):
        split |= {"num_examples": rows, "num_bytes": size}
        split.pop("shard_lengths", None)
    if written.weights:
        info["features"][WEIGHT] = {"dtype": "float32", "_type": "Value"}
        if state["_format_columns"]:
            state["_format_columns"].append(WEIGHT)
    for name, content in ((STATE, state), (INFO, info)):
        (folder / name).write_text(json.dumps(content, indent=2), encoding="utf-8")


def rows(data: Path, columns: Mapping[str, str]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The file and the cells of every row of a table; ``columns`` has the column of each cell.

    Raises ``UserError`` as ``rewrite``.
    """
    names = list(columns.values())
    for path in tables(data):
        for cells in _cells(path, names):
            yield path, dict(zip(columns, cells, strict=True))


def has_column(data: Path, name: str) -> bool:
    """Whether a table has a column of this name; of JSON Lines the first row tells."""
    path = tables(data)[0]
    try:
        first = next(_cells(path, [name]), [None])
    except UserError as error:
        if error.what == f"no column {name!r}":
            return False
        raise
    return ending(path)[0] not in JSON_LINES or first[0] is not None


def _cells(path: Path, names: Sequence[str]) -> Iterator[Sequence[Any]]:
    kind = ending(path)[0]
    if kind not in (*PARQUET, ARROW):
        yield from (cells for _, what, cells in records(path, names) if what == ROW)
        return
    with _readable(path), contextlib.ExitStack() as files:
        if kind == ARROW:
            found, batches = _batches(path, files)
        else:
            parquet = files.enter_context(pq.ParquetFile(path))
            found, batches = parquet.schema_arrow, parquet.iter_batches(columns=list(set(names)))
        readers.check_columns(path, found.names, names)
        for batch in batches:
            yield from zip(*(batch.column(name).to_pylist() for name in names), strict=True)
