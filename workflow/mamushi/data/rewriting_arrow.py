"""An Arrow stream or an Arrow file written again as what it was: schema, record batches and their
metadata, and compression of their buffers."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Container, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa

from mamushi.data import cutting
from mamushi.data.columnar import ARROW_FILE, library_errors, opened_arrow, values
from mamushi.data.lines import check_columns, shown_name
from mamushi.data.matching import RowRemoval
from mamushi.data.opening import held
from mamushi.errors import UserError

SCHEMA, RECORD_BATCH = 1, 3
"""Kinds of messages."""
_CODECS = {0: "lz4", 1: "zstd"}
VERSIONS = {3: pa.ipc.MetadataVersion.V4, 4: pa.ipc.MetadataVersion.V5}
CONTINUED = b"\xff\xff\xff\xff"
"""How a message begins, but in streams of before 2019."""
FOOT = 4 + len(ARROW_FILE)
"""Bytes behind the footer of an Arrow file: its length and the magic."""


def write_arrow(
    path: Path, out: Path, removal: RowRemoval, digests: dict[str, str]
) -> tuple[int, str]:
    """Write ``path`` to ``out`` without what ``removal`` takes; ``digests`` gets what was read.
    Return the rows that are in it by what was written, and its SHA-256."""
    with held(path, digests) as handle:
        is_file = handle.read(len(ARROW_FILE)) == ARROW_FILE
        options = _options(path, handle, is_file)
        source = opened_arrow(path, handle)
        schema = source.schema
        check_columns(path, schema.names, removal.columns)
        file_metadata = getattr(source, "metadata", None) if is_file else None
        extra_options = {"metadata": file_metadata} if file_metadata else {}
        with out.open("wb") as sink:
            start = pa.ipc.new_file if is_file else pa.ipc.new_stream
            with refused(path), start(sink, schema, options=options, **extra_options) as writer:
                row = 0
                for batch, metadata in _batches(path, source, is_file):
                    table = pa.Table.from_batches([batch])
                    left = without_removed(table, table, removal, path, row)
                    row += len(table)
                    if len(left):
                        # In one record batch, as it was read.
                        writer.write_batch(_one_batch(left), custom_metadata=metadata)
    return _counted(out, is_file)


def _batches(path: Path, source: Any, is_file: bool) -> Iterator[tuple[Any, Any]]:
    numbers = iter(range(source.num_record_batches)) if is_file else None
    while True:
        with library_errors(path):
            try:
                if numbers is None:
                    read = source.read_next_batch_with_custom_metadata()
                else:
                    read = source.get_batch_with_custom_metadata(next(numbers))
            except StopIteration:
                return
            read.batch.validate(full=True)
        yield read.batch, read.custom_metadata


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    columns = [pa.concat_arrays(column.chunks) for column in table.columns]
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)


def _counted(path: Path, is_file: bool) -> tuple[int, str]:
    """Return the rows of a file that was written, and its SHA-256."""
    with path.open("rb") as handle:
        digest = hashlib.file_digest(handle, "sha256").hexdigest()
        handle.seek(0)
        if not is_file:
            return sum(len(batch) for batch in pa.ipc.open_stream(handle)), digest
        with pa.ipc.open_file(handle) as source:
            numbers = range(source.num_record_batches)
            return sum(len(source.get_batch(number)) for number in numbers), digest


# What both Arrow and Parquet need ----------------------------------------------------------------


@contextlib.contextmanager
def refused(path: Path) -> Iterator[None]:
    """Turn what a library says that it cannot write into a ``UserError``."""
    try:
        yield
    except pa.ArrowException as error:
        problem = f"cannot be written again as it is ({error})"
        do = "leave that column out, or write it as numbers or text"
        raise UserError(problem, where=path, do=do) from None


def without_removed(
    table: pa.Table, named: pa.Table, removal: RowRemoval, path: Path, row: int
) -> pa.Table:
    """Return a table without the rows that go, and with the texts or conversations that are cut out
    of. ``named``: the
    columns that ``removal`` reads, as those who rank read them; ``row``: rows before it."""
    columns = {name: values(named[name], name, path) for name in removal.columns}
    rows = zip(*columns.values(), strict=True) if columns else iter([()] * len(table))
    file, gone = shown_name(path), list[set[int] | None]()
    for number, cells in enumerate(rows, row + 1):
        place = f"{file}, row {number}"
        gone.append(removal.of(dict(zip(columns, cells, strict=True)), place))
    if any(gone):
        column = removal.cut_column
        table = _cut(table, column, columns[column], [places or set() for places in gone], path)
    return kept(table, [places is not None for places in gone])


def _cut(
    table: pa.Table, column: str, read: Sequence[Any], gone: Sequence[Container[int]], path: Path
) -> pa.Table:
    """Return a table with what goes of each text, as it was ``read``, or conversation cut out."""
    at = table.column_names.index(column)
    field, is_text = table.schema.field(at), any(isinstance(cell, str) for cell in read)
    cells = read if is_text else table.column(at).to_pylist()
    cut = cutting.without_characters if is_text else cutting.without_turns
    left = [cut(cell, of) if of else cell for cell, of in zip(cells, gone, strict=True)]
    try:
        if not is_text and pa.chunked_array([pa.array(cells, field.type)]) != table.column(at):
            raise TypeError("its values cannot be written as they are")
        return table.set_column(at, field, pa.array(left, field.type))
    except (pa.ArrowException, TypeError) as error:
        problem = f"column {field.name!r} of {field.type} cannot be cut ({error})"
        do = "write texts as text, and conversations as lists of objects"
        raise UserError(problem, where=path, do=do) from None


def kept(table: pa.Table, stay: Sequence[bool]) -> pa.Table:
    """Return the rows of a table that stay."""
    if all(stay):
        return table
    mask, runs, at = pa.array(stay, pa.bool_()), list[tuple[int, int]](), 0
    for staying, run in groupby(stay):
        length = len(list(run))
        runs += [(at, length)] if staying else []
        at += length
    columns = []
    for column in table.columns:
        try:
            left = column.filter(mask)
        except NotImplementedError:
            # Every type can be cut into runs, though not each can be filtered.
            slices = [chunk for run in runs for chunk in column.slice(*run).chunks]
            left = pa.chunked_array([pa.concat_arrays(slices)] if slices else [], column.type)
        columns.append(pa.chunked_array([_compact(part) for part in left.chunks], column.type))
    return pa.Table.from_arrays(columns, schema=table.schema)


def _compact(array: Any) -> Any:
    """Return an array of views with the values that they show alone: with less rows it keeps the
    text of all of them, also of those that go."""
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, _compact(array.storage))
    if pa.types.is_run_end_encoded(kind):
        return pa.RunEndEncodedArray.from_arrays(array.run_ends, _compact(array.values), kind)
    if (plain := _without_views(kind)) == kind:
        return array
    try:
        return array.cast(plain).cast(kind)
    except pa.ArrowException:
        return pa.array(array.to_pylist(), kind)


def _without_views(kind: pa.DataType) -> pa.DataType:
    """Return a type with plain text and bytes in the place of views."""
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    if pa.types.is_struct(kind):
        fields = [kind.field(at) for at in range(kind.num_fields)]
        return pa.struct([field.with_type(_without_views(field.type)) for field in fields])
    for is_one, make in (
        (pa.types.is_list, pa.list_),
        (pa.types.is_large_list, pa.large_list),
        (pa.types.is_fixed_size_list, lambda value: pa.list_(value, kind.list_size)),
        (pa.types.is_list_view, pa.list_),
        (pa.types.is_large_list_view, pa.large_list),
    ):
        if is_one(kind):
            field = kind.value_field
            return make(field.with_type(_without_views(field.type)))
    if pa.types.is_map(kind):
        key, item = kind.key_field, kind.item_field
        key, item = (part.with_type(_without_views(part.type)) for part in (key, item))
        return pa.map_(key, item, kind.keys_sorted)
    return kind


# Messages of Arrow, which are FlatBuffers --------------------------------------------------------


def _options(path: Path, handle: Any, is_file: bool) -> pa.ipc.IpcWriteOptions:
    """Return the options by which the messages of an open file were written. Raises ``UserError``
    for one in the byte order of another machine."""
    options: dict[str, Any] = {"emit_dictionary_deltas": True}
    try:
        order, first = (_file if is_file else _stream)(handle)
        if first is not None:
            prefix, content = first
            options["use_legacy_format"] = prefix != CONTINUED
            root = _root(content)
            options["metadata_version"] = VERSIONS[_byte(content, root, 0)]
            if compression := _table(content, _table(content, root, 2), 3):
                options["compression"] = _CODECS[_byte(content, compression, 0)]
    except (IndexError, KeyError, ValueError) as error:
        problem = f"damaged or not an Arrow stream or file ({error!r})"
        raise UserError(problem, where=path, do="make it again") from None
    if order:
        do = "write it on a machine of little-endian byte order"
        raise UserError("is big-endian Arrow", where=path, do=do)
    handle.seek(0)
    return pa.ipc.IpcWriteOptions(**options)


Message = tuple[bytes, bytes]
"""How a message begins, and what it says of its body."""


def _file(handle: Any) -> tuple[int, Message | None]:
    """Return the byte order in an Arrow file, 0 for little-endian, and its first record batch."""
    size = handle.seek(0, 2)
    handle.seek(max(size - FOOT, 0))
    length = int.from_bytes(handle.read(4), "little")
    handle.seek(max(size - FOOT - length, 0))
    footer = handle.read(length)
    root = _root(footer)
    blocks = _table(footer, root, 3)
    order = _byte(footer, _table(footer, root, 1), 0)
    if not blocks or not int.from_bytes(footer[blocks : blocks + 4], "little"):
        return order, None
    handle.seek(int.from_bytes(footer[blocks + 4 : blocks + 12], "little"))
    return order, _message(handle)


def _stream(handle: Any) -> tuple[int, Message | None]:
    """Return the byte order in an Arrow stream, 0 for little-endian, and its first record batch."""
    handle.seek(0)
    order = 0
    while message := _message(handle):
        content = message[1]
        root = _root(content)
        kind = _byte(content, root, 1)
        if kind == RECORD_BATCH:
            return order, message
        if kind == SCHEMA:
            order = _byte(content, _table(content, root, 2), 0)
        at = _field(content, root, 3)
        handle.seek(int.from_bytes(content[at : at + 8], "little") if at else 0, 1)
    return order, None


def _message(handle: Any) -> Message | None:
    prefix = handle.read(4)
    length = int.from_bytes(handle.read(4) if prefix == CONTINUED else prefix, "little")
    content = handle.read(length)
    return (prefix, content) if length and len(content) == length else None


def _root(content: bytes) -> int:
    return int.from_bytes(content[:4], "little")


def _field(content: bytes, table: int, number: int) -> int:
    """Return where a field of a table stands; 0 where it has its default."""
    vtable = table - int.from_bytes(content[table : table + 4], "little", signed=True)
    entry = 4 + 2 * number
    if entry >= int.from_bytes(content[vtable : vtable + 2], "little"):
        return 0
    offset = int.from_bytes(content[vtable + entry : vtable + entry + 2], "little")
    return table + offset if offset else 0


def _byte(content: bytes, table: int, number: int) -> int:
    at = _field(content, table, number)
    return content[at] if at else 0


def _table(content: bytes, table: int, number: int) -> int:
    at = _field(content, table, number)
    return at + int.from_bytes(content[at : at + 4], "little") if at else 0
