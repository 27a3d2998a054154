"""A Parquet file written again: schema, metadata, row groups, sorting, and the compression,
dictionaries, statistics and pages of each column as they were.

The values are read as they are stored: times, dates and decimals in integers as these integers, and
what else the library would write in another way as bytes. Then the schema that was read is put in
the place of the one that was written, which differs in names and meanings alone.
"""

from __future__ import annotations

import hashlib
import io
import re
from inspect import signature
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mamushi.data import footers
from mamushi.data.columnar import library_errors, opened_parquet
from mamushi.data.footers import Struct
from mamushi.data.lines import check_columns
from mamushi.data.matching import RowRemoval
from mamushi.data.opening import held
from mamushi.data.rewriting_arrow import refused, without_removed
from mamushi.errors import UserError

INT96 = "INT96"
FARTHEST = 2**63 // 1000
"""Microseconds from 1970 to the last nanosecond that 64 bits can count."""
FIXED = 7
"""The type of bytes of a fixed number."""
SAMPLE = 64
"""Rows of a file that are compared value by value after it was written."""
UNITS = ("TIMESTAMP", "TIME", "DATE", "DECIMAL", "INT", "FLOAT16")
"""Kinds of values that are something else where their unit or width is."""
ORDERED = ("NONE", "STRING", "ENUM", "JSON", "BSON", "UUID", *UNITS)
"""Kinds whose order, by which statistics go, the library knows."""
_GROUPS = {"converted": (1, 2, 3), "logical": (2, 3)}
"""Maps and lists among the groups of a schema."""
_CODECS = {0: "none", 1: "snappy", 2: "gzip", 4: "brotli", 5: "lz4", 6: "zstd", 7: "lz4"}
CODEC, STATISTICS, DICTIONARY, BLOOM, OFFSETS = 4, 12, 11, 14, 4
"""Fields of what is said of a column's chunk, the last of the chunk itself."""
VALUES, NULLS, BOUNDS = 5, 3, (1, 2, 5, 6)
"""The number of values, and in statistics that of nulls, the least and the greatest."""


def write_parquet(
    path: Path, out: Path, removal: RowRemoval, digests: dict[str, str]
) -> tuple[int, str]:
    """Write ``path`` to ``out`` without what ``removal`` takes; ``digests`` gets what was read.
    Return the rows that are in it by what was written, and its SHA-256."""
    with held(path, digests) as handle:
        named = opened_parquet(path, handle)
        check_columns(path, named.schema_arrow.names, removal.columns)
        footer = footers.read_footer(handle, path)
        if footers.ENCRYPTION in footer:
            raise UserError("is encrypted", where=path, do="write it without encryption")
        with refused(path):
            source, options, bare = _stored(path, handle, footer, named.metadata)
        schema, groups, first = source.schema_arrow, list[int](), None
        start, row = pq.ParquetWriter, 0
        with out.open("wb") as sink, refused(path), start(sink, schema, **options) as writer:
            for number in range(source.num_row_groups):
                with library_errors(path):
                    table = source.read_row_group(number)
                    # As those who rank read them.
                    ids = named.read_row_group(number, [*dict.fromkeys(removal.columns)])
                _check_times(path, handle, source, number)
                stay = without_removed(table, ids, removal, path, row)
                row += len(table)
                if len(stay):
                    first = stay.slice(0, SAMPLE) if first is None else first
                    # In one row group, as it was read.
                    writer.write_table(stay, len(stay))
                    groups.append(number)
        _restore(path, out, footer, groups)
        return _checked(path, out, named, bare, first)


def _stored(
    path: Path, handle: Any, footer: Struct, metadata: Any
) -> tuple[Any, dict[str, Any], set[int]]:
    """Return a reader of the values as they are stored, the options by which they are written so,
    and of which leaves the meaning is left out of both. Raises ``UserError`` that names a column
    that would be stored in another way."""
    leaves = [metadata.schema.column(at) for at in range(metadata.num_columns)]
    unordered = {at for at, leaf in enumerate(leaves) if leaf.logical_type.type not in ORDERED}
    # The order of integers with a sign is that of what they mean.
    bare = {at for at, leaf in enumerate(leaves) if _is_integer(leaf)} | unordered
    pages = _first_page(handle, footer)
    for _ in range(2):
        source = _reader(path, handle, _plain(footer, bare))
        for version in dict.fromkeys((metadata.format_version, "2.6")):
            options = _options(footer, leaves, unordered, version, pages)
            tried, written = _tried(source.schema_arrow, options)
            odd = _first_odd(footer, written)
            changed = {at for at in _changed_leaves(leaves, tried) if at not in bare}
            if odd is None and not changed:
                names = [tried.column(at).path for at in range(len(leaves))]
                return source, _by_name(options, names), bare
        # Then as bytes: their order is another one.
        unordered, bare = unordered | changed, bare | changed
    problem = f"column {odd!r} is stored in a way that is not written today"
    do = "write the table again with another program, or leave that column out"
    raise UserError(problem, where=path, do=do)


def _first_page(handle: Any, footer: Struct) -> int | None:
    groups = footers.value(footer, footers.ROW_GROUPS)
    chunks = footers.value(groups[0], footers.COLUMNS) if groups else ()
    return (
        footers.first_page_kind(handle, footers.value(chunks[0], footers.COLUMN_METADATA))
        if chunks
        else None
    )


def _is_integer(leaf: Any) -> bool:
    return leaf.physical_type in ("INT32", "INT64") and "isSigned=false" not in str(
        leaf.logical_type
    )


def _plain(footer: Struct, bare: set[int]) -> Struct:
    """Return a footer without types of Arrow, and without the meaning of the leaves ``bare``."""
    meaning = (footers.CONVERTED, footers.SCALE, footers.PRECISION, footers.LOGICAL)
    elements, leaf = list[Struct](), 0
    for element in footers.value(footer, footers.SCHEMA):
        group = bool(footers.value(element, footers.CHILDREN)) or not elements
        logical = footers.value(element, footers.LOGICAL) or {}
        is_collection = footers.value(element, footers.CONVERTED) in _GROUPS["converted"] or any(
            field in _GROUPS["logical"] for field in logical
        )
        if (group and not is_collection) or (not group and leaf in bare):
            element = {field: of for field, of in element.items() if field not in meaning}
        elements.append(element)
        leaf += not group
    left = {field: of for field, of in footer.items() if field != footers.METADATA}
    return footers.with_items(left, footers.SCHEMA, elements)


def _options(
    footer: Struct, leaves: list[Any], unordered: set[int], version: str, pages: int | None
) -> dict[str, Any]:
    """Return the options by which the file was written, as far as it tells; those of columns by the
    number of the leaf. ``pages``: the kind of its first page."""
    options: dict[str, Any] = {
        "use_deprecated_int96_timestamps": any(leaf.physical_type == INT96 for leaf in leaves),
        "store_schema": False,
        "version": version,
    }
    if not (groups := footers.value(footer, footers.ROW_GROUPS)):
        return options
    chunks = footers.value(groups[0], footers.COLUMNS)
    columns = [footers.value(chunk, footers.COLUMN_METADATA) for chunk in chunks]
    return options | {
        "data_page_version": "2.0" if pages == footers.DATA_PAGE_2 else "1.0",
        "write_page_index": any(OFFSETS in chunk for chunk in chunks),
        "compression": {
            at: _CODECS.get(footers.value(column, CODEC), "snappy")
            for at, column in enumerate(columns)
        },
        "use_dictionary": {at: DICTIONARY in column for at, column in enumerate(columns)},
        "write_statistics": {
            at: at not in unordered and _has_bounds(column) for at, column in enumerate(columns)
        },
        "bloom": {at: BLOOM in column for at, column in enumerate(columns)},
    }


def _has_bounds(column: Struct) -> bool:
    """Return whether the statistics of a column tell more than how many nulls it has, or it has
    nothing else."""
    statistics = footers.value(column, STATISTICS) or {}
    whole = footers.value(statistics, NULLS) == footers.value(column, VALUES)
    return bool(statistics) and (whole or any(field in statistics for field in BOUNDS))


def _by_name(options: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """Return options with those of columns by their names."""
    named = dict(options)
    bloom = named.pop("bloom", {})
    if "compression" in named:
        named["compression"] = {names[at]: of for at, of in named["compression"].items()}
        for key in ("use_dictionary", "write_statistics"):
            named[key] = [names[at] for at, is_set in named[key].items() if is_set] or False
    # Not every version of the library writes them.
    if any(bloom.values()) and "bloom_filter_options" in signature(pq.ParquetWriter).parameters:
        named["bloom_filter_options"] = {names[at]: True for at, is_set in bloom.items() if is_set}
    return named


def _tried(schema: pa.Schema, options: dict[str, Any]) -> tuple[Any, Struct]:
    """Return the schema that is written with some options, and its footer."""
    kept_ones = ("use_deprecated_int96_timestamps", "store_schema", "version")
    sink = io.BytesIO()
    pq.ParquetWriter(sink, schema, **{key: options[key] for key in kept_ones}).close()
    return pq.read_metadata(sink).schema, footers.read_footer(sink, "what is written")


def _shape(element: Struct) -> list[Any]:
    fields = (footers.TYPE, footers.LENGTH, footers.REPETITION, footers.CHILDREN)
    shape = [footers.value(element, field) or 0 for field in fields]
    # Of a type whose length is always the same, some write it and some do not.
    return shape if footers.value(element, footers.TYPE) == FIXED else [shape[0], 0, *shape[2:]]


def _first_odd(footer: Struct, written: Struct) -> str | None:
    """Return the column that has another shape in what is written; None where all are the same."""
    expected, actual = (footers.value(of, footers.SCHEMA) for of in (footer, written))
    column, left = "", 0
    nothing: Struct = {}
    for old, new in zip_longest(expected[1:], actual[1:], fillvalue=nothing):
        if not left:
            column, left = footers.text_field(old, footers.NAME), 1
        left += (footers.value(old, footers.CHILDREN) or 0) - 1
        if _shape(old) != _shape(new):
            return column
    return None


def _changed_leaves(leaves: list[Any], tried: Any) -> set[int]:
    """Return which leaves mean something else in what is written."""
    pairs = enumerate(leaves[: len(tried)])
    return {
        at
        for at, leaf in pairs
        if leaf.physical_type != tried.column(at).physical_type
        or leaf.length != tried.column(at).length
        or (leaf.logical_type.type in UNITS and _meaning(leaf) != _meaning(tried.column(at)))
    }


def _meaning(leaf: Any) -> str:
    # Not by which of the two ways the file says it.
    return re.sub(r", (is_from|force_set)_converted_type=\w+", "", str(leaf.logical_type))


def _check_times(path: Path, handle: Any, source: Any, number: int) -> None:
    """Raise ``UserError`` for a time of an old kind that cannot be read as it is."""
    file_metadata = source.metadata
    leaves = [file_metadata.schema.column(at) for at in range(file_metadata.num_columns)]
    names = [leaf.path for leaf in leaves if leaf.physical_type == INT96]
    if not names:
        return
    reader = pq.ParquetFile(handle, metadata=file_metadata, coerce_int96_timestamp_unit="us")
    with library_errors(path):
        table = reader.read_row_group(number, columns=names).flatten()
    for field, column in zip(table.schema, table.columns, strict=True):
        if not pa.types.is_timestamp(field.type):
            continue
        bounds = pc.min_max(column.cast(pa.int64())).as_py()
        if bounds["min"] is not None and max(-bounds["min"], bounds["max"]) >= FARTHEST:
            problem = f"column {field.name!r} holds times (INT96) before 1678 or after 2262"
            raise UserError(problem, where=path, do="write them as TIMESTAMP")


def _restore(path: Path, out: Path, footer: Struct, groups: list[int]) -> None:
    """Put schema, metadata and sorting that were read in the place of what was written. ``groups``:
    of which row group that was read each one is that was written."""
    was = footers.value(footer, footers.ROW_GROUPS)
    with out.open("rb+") as handle:
        written = footers.read_footer(handle, out)
        row_groups = []
        for group, number in zip(footers.value(written, footers.ROW_GROUPS), groups, strict=True):
            chunks = []
            pairs = zip(
                footers.value(group, footers.COLUMNS),
                footers.value(was[number], footers.COLUMNS),
                strict=True,
            )
            for chunk, old in pairs:
                kind, metadata = chunk[footers.COLUMN_METADATA]
                names = footers.value(old, footers.COLUMN_METADATA)[footers.PATH]
                chunks.append(
                    {**chunk, footers.COLUMN_METADATA: (kind, {**metadata, footers.PATH: names})}
                )
            group = footers.with_items(group, footers.COLUMNS, chunks)
            if footers.SORTING in was[number]:
                group[footers.SORTING] = was[number][footers.SORTING]
            row_groups.append(group)
        new = footers.with_items(written, footers.ROW_GROUPS, row_groups)
        new.pop(footers.METADATA, None)
        for field in (footers.VERSION, footers.SCHEMA, footers.METADATA):
            if field in footer:
                new[field] = footer[field]
        footers.replace(handle, new)


def _checked(
    path: Path, out: Path, named: Any, bare: set[int], first: pa.Table | None
) -> tuple[int, str]:
    """Return the rows of a file that was written, and its SHA-256. Raises ``RuntimeError`` where it
    has another schema, or its first rows are others."""
    with out.open("rb") as handle:
        digest = hashlib.file_digest(handle, "sha256").hexdigest()
        now = opened_parquet(path, handle)
        same = (
            now.schema.equals(named.schema)
            and (now.metadata.metadata or {}) == (named.metadata.metadata or {})
            and now.schema_arrow.equals(named.schema_arrow, check_metadata=True)
        )
        if not same:
            raise RuntimeError(f"{path}: its schema would change; please report this")
        if first is not None:
            reader = _reader(path, handle, _plain(footers.read_footer(handle, out), bare))
            batch = next(reader.iter_batches(batch_size=SAMPLE, row_groups=[0]))
            for name, old, new in zip(first.schema.names, first, batch, strict=True):
                if not _equal(old.combine_chunks(), new):
                    problem = f"column {name!r} would not be the same; please report this"
                    raise RuntimeError(f"{path}: {problem}")
        return now.metadata.num_rows, digest


def _equal(left: Any, right: Any) -> bool:
    # NaN is not equal to itself.
    return bool(left.equals(right)) or repr(left.to_pylist()) == repr(right.to_pylist())


def _reader(path: Path, handle: Any, footer: Struct) -> Any:
    """Return the reader of an open file that takes another footer for its own."""
    content = footers.MAGIC + footers.encoded(footer)
    with library_errors(path):
        metadata = pq.read_metadata(pa.BufferReader(content))
    return opened_parquet(path, handle, metadata)
