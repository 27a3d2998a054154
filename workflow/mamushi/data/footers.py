"""The footer of a Parquet file, in which its schema stands: a struct of the compact protocol of
Thrift, read into a tree and written again.

A library writes the schema that its own types have; here the one that was read is put in its place.
"""

from __future__ import annotations

import struct
from typing import Any

from mamushi.errors import UserError

MAGIC = b"PAR1"
VERSION, SCHEMA, ROW_GROUPS, METADATA, ENCRYPTION = 1, 2, 4, 5, 8
"""Fields of a file,"""
TYPE, LENGTH, REPETITION, NAME, CHILDREN = 1, 2, 3, 4, 5
CONVERTED, SCALE, PRECISION, LOGICAL = 6, 7, 8, 10
"""of an element of its schema,"""
COLUMNS, SORTING = 1, 4
"""of a row group,"""
COLUMN_METADATA = 3
"""of a column's chunk,"""
PATH, OFFSET = 3, 9
"""of what is said of it,"""
PAGE, DATA_PAGE_2 = 1, 3
"""and of the header of a page, with what is there of one in the second version."""
HEADER_BYTES = 1 << 16
"""Bytes of a page's header, which holds statistics, at most."""
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY = 1, 2, 3, 7, 8
_LIST, _SET, _MAP, _STRUCT, _UUID = 9, 10, 11, 12, 13
_INTEGERS = (4, 5, 6)

Struct = dict[int, tuple[int, Any]]
"""Field -> type and value."""


def read_footer(handle: Any, where: object) -> Struct:
    """Return the footer of an open file. Raises ``UserError`` for one that is damaged."""
    try:
        size = handle.seek(0, 2)
        handle.seek(max(size - 8, 0))
        tail = handle.read(8)
        length = int.from_bytes(tail[:4], "little")
        if tail[4:] != MAGIC or length > size - 12:
            raise ValueError("it does not end as one does")
        handle.seek(size - 8 - length)
        footer = _Reader(handle.read(length)).struct()
        if ENCRYPTION not in footer and not _is_whole(footer):
            raise ValueError("it does not describe all columns")
        return footer
    except (ValueError, IndexError, struct.error, RecursionError) as error:
        problem = f"damaged or not a Parquet file (its footer cannot be read: {error})"
        raise UserError(problem, where=where, do="make it again") from None


def _is_whole(footer: Struct) -> bool:
    """Return whether a footer has what others read in it: a description of each chunk."""
    try:
        groups = value(footer, ROW_GROUPS) or ()
        chunks = [chunk for group in groups for chunk in value(group, COLUMNS) or ()]
        return bool(value(footer, SCHEMA)) and all(
            PATH in value(chunk, COLUMN_METADATA) for chunk in chunks
        )
    except (AttributeError, TypeError):
        return False


def encoded(footer: Struct) -> bytes:
    """Return a footer as it stands at the end of a file, with its length and the magic."""
    content = bytearray()
    _write_struct(content, footer)
    return bytes(content) + len(content).to_bytes(4, "little") + MAGIC


def replace(handle: Any, footer: Struct) -> None:
    """Put a footer in the place of that of a file that is open for writing."""
    size = handle.seek(0, 2)
    handle.seek(size - 8)
    start = size - 8 - int.from_bytes(handle.read(4), "little")
    handle.seek(start)
    handle.truncate()
    handle.write(encoded(footer))


def first_page_kind(handle: Any, column: Struct) -> int | None:
    """Return the kind of the first page of data of a column's chunk; None where it cannot be told.
    What the footer says of its kinds of pages is the same of both versions in many files."""
    handle.seek(value(column, OFFSET) or 0)
    try:
        kind = value(_Reader(handle.read(HEADER_BYTES)).struct(), PAGE)
    except (ValueError, IndexError, RecursionError):
        return None
    return kind if isinstance(kind, int) else None


def value(of: Struct, field: int) -> Any:
    """Return the value of a field, None where it is not there; of a list its items."""
    kind, content = of.get(field, (0, None))
    return content[1] if kind in (_LIST, _SET) else content


def text_field(of: Struct, field: int) -> str:
    """Return a field of text."""
    return bytes(value(of, field) or b"").decode("utf-8", "backslashreplace")


def with_items(of: Struct, field: int, items: list[Any]) -> Struct:
    """Return a struct with other items in one of its lists."""
    kind, (item, _) = of[field]
    return {**of, field: (kind, (item, items))}


class _Reader:
    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def byte(self) -> int:
        self.at += 1
        return self.content[self.at - 1]

    def varint(self) -> int:
        number = shift = 0
        while True:
            byte = self.byte()
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
            shift += 7
            if shift > 70:
                raise ValueError("an integer without an end")

    def integer(self) -> int:
        number = self.varint()
        return (number >> 1) ^ -(number & 1)

    def bytes(self, size: int) -> bytes:
        if self.at + size > len(self.content):
            raise ValueError("it ends too early")
        self.at += size
        return self.content[self.at - size : self.at]

    def struct(self) -> Struct:
        fields: Struct = {}
        field = 0
        while (header := self.byte()) != 0:
            kind = header & 0x0F
            field = field + (header >> 4) if header >> 4 else self.integer()
            fields[field] = kind, (None if kind in (_TRUE, _FALSE) else self.of(kind))
        return fields

    def of(self, kind: int) -> Any:
        if kind in _INTEGERS:
            return self.integer()
        if kind in (_TRUE, _FALSE, _BYTE):
            return self.byte()
        if kind == _DOUBLE:
            return self.bytes(8)
        if kind == _BINARY:
            return self.bytes(self.varint())
        if kind in (_LIST, _SET):
            header = self.byte()
            size = header >> 4 if header >> 4 != 15 else self.varint()
            return header & 0x0F, [self.of(header & 0x0F) for _ in range(size)]
        if kind == _MAP:
            size = self.varint()
            kinds = self.byte() if size else 0
            pairs = [(self.of(kinds >> 4), self.of(kinds & 0x0F)) for _ in range(size)]
            return kinds, pairs
        if kind == _STRUCT:
            return self.struct()
        if kind == _UUID:
            return self.bytes(16)
        raise ValueError(f"a field of the unknown type {kind}")


def _write_struct(out: bytearray, of: Struct) -> None:
    last = 0
    for field, (kind, content) in sorted(of.items()):
        if 0 < field - last < 16:
            out.append((field - last) << 4 | kind)
        else:
            out.append(kind)
            _write_varint(out, field << 1)
        last = field
        if kind not in (_TRUE, _FALSE):
            _write(out, kind, content)
    out.append(0)


def _write(out: bytearray, kind: int, content: Any) -> None:
    if kind in _INTEGERS:
        _write_varint(out, content << 1 if content >= 0 else (-content << 1) - 1)
    elif kind in (_TRUE, _FALSE, _BYTE):
        out.append(content)
    elif kind == _BINARY:
        _write_varint(out, len(content))
        out += content
    elif kind in (_LIST, _SET):
        item, items = content
        if len(items) < 15:
            out.append(len(items) << 4 | item)
        else:
            out.append(0xF0 | item)
            _write_varint(out, len(items))
        for element in items:
            _write(out, item, element)
    elif kind == _MAP:
        kinds, pairs = content
        _write_varint(out, len(pairs))
        if pairs:
            out.append(kinds)
        for key, item in pairs:
            _write(out, kinds >> 4, key)
            _write(out, kinds & 0x0F, item)
    elif kind == _STRUCT:
        _write_struct(out, content)
    else:
        out += content


def _write_varint(out: bytearray, number: int) -> None:
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
