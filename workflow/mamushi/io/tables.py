"""Tables on disk, Parquet with zstd but for vectors, checked against their schema when written and
when read: see ``schemas``."""

import csv
import json
import math
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mamushi.io import digests, paths, schemas
from mamushi.io.columns import Table
from mamushi.io.domains import *  # noqa: F403
from mamushi.io.files import atomic, reading

FORMULA = re.compile(r"[\s\ufeff]*[=+\-@＝＋－＠]|[\t\n]")
"""How a cell begins that a spreadsheet may run as a formula, or move to another cell."""
MAPPED = 2**30
"""Bytes from which a matrix lies in a file that is mapped into memory."""
Columns = Any
"""A table, its columns by their names, its rows, or an iterator over blocks of it, at least one."""
MARK = "mamushi"
"""The key of the metadata that all tables of this program have."""
GROUP, LARGE_GROUP = 16384, 65536
"""Rows of a row group in a table of vectors, and in others."""


def write_table(
    path: str | Path, kind: Table, columns: Columns, *, metadata: Mapping[str, Any] | None = None
) -> None:
    """Write an artifact with its ``metadata``, whole or not at all. Raises ``ValueError`` when a
    column is missing or has nulls that its schema forbids."""
    described = {MARK: json.dumps(metadata or {}, sort_keys=True)}
    # They are large and hardly compress.
    has_vectors = any(map(pa.types.is_fixed_size_list, kind.schema.types))
    how: Any = {"write_page_checksum": True, "use_dictionary": not has_vectors}
    how["compression"] = "none" if has_vectors else "zstd"
    blocks = columns if isinstance(columns, Iterator) else iter([columns])
    tables = (_cast(kind, block).replace_schema_metadata(described) for block in blocks)
    first, rows = next(tables), GROUP if has_vectors else LARGE_GROUP
    with atomic(path) as draft, pq.ParquetWriter(draft, first.schema, **how) as writer:
        for table in chain([first], tables):
            # A column in pieces would end its pages where they end.
            for start in range(0, max(len(table), 1), rows):
                writer.write_table(table.slice(start, rows).combine_chunks(), row_group_size=rows)


def _cast(kind: Table, columns: Columns) -> pa.Table:
    """Return columns as the table that they are declared to be."""
    if isinstance(columns, list):
        return pa.Table.from_pylist(columns, schema=kind.schema)
    table = columns if isinstance(columns, pa.Table) else pa.table(dict(columns))
    further = [f for f in table.schema if kind.further and f.name.startswith(kind.further)]
    schema = pa.schema([*kind.like(table.schema), *further])
    if odd := {*table.column_names} ^ {*schema.names}:
        raise ValueError(f"{kind.name}: missing, or not in the schema: {sorted(odd)}")
    return table.select(schema.names).cast(schema)


def read_table(
    path: str | Path, kind: Table | None, columns: Sequence[str] | None = None
) -> pa.Table:
    """Read an artifact and check it against its schema; one of a room has none here.

    Raises ``UserError`` when the file is missing, damaged, or lacks a column or has another type.
    """
    with _open_checked(path, kind) as file:
        return file.read(columns=columns)


def read_groups(
    path: str | Path, kind: Table, columns: Sequence[str] | None = None
) -> Iterator[pa.Table]:
    """Read an artifact row group by row group. Raises ``UserError`` as ``read_table``."""
    with _open_checked(path, kind) as file:
        for group in range(file.num_row_groups):
            yield file.read_row_group(group, columns=columns)


def read_metadata(path: str | Path) -> dict[str, Any]:
    """Return the ``metadata`` that ``write_table`` stored. Raises ``UserError`` as ``reading``."""
    with _open_checked(path) as file:
        return dict(json.loads((file.schema_arrow.metadata or {}).get(MARK.encode(), b"{}")))


@contextmanager
def _open_checked(path: str | Path, kind: Table | None = None) -> Iterator[pq.ParquetFile]:
    """Open a table that has the columns of its schema. Its pages are checked as they are read."""
    checked: Any = {"page_checksum_verification": True, "pre_buffer": False}
    with reading(path), pq.ParquetFile(path, **checked) as file:
        stored = file.schema_arrow
        for field in kind.like(stored) if kind else ():
            if field.name not in stored.names or stored.field(field.name).type != field.type:
                raise ValueError(f"{field.name!r} should be {field.type}")
        yield file


def examples_file(root: str | Path, digest: str | None, **cell: Any) -> Path:
    """Return the examples that a cell has read, by their digest: those that its seed has drawn, or
    else those of the dataset."""
    drawn = paths.under(root, paths.DRAWN, **cell)
    is_drawn = drawn.is_file() and digests.of(drawn) == digest
    return drawn if is_drawn else paths.under(root, paths.EXAMPLES, **cell)


def ranked_columns(examples: Path, *further: str) -> dict[str, pa.Array]:
    """Return columns of the texts that are ranked: ``id``, ``domain`` and ``further`` ones."""
    table = read_table(examples, schemas.EXAMPLES, ["id", "domain", "section", *further])
    inference = table.filter(pc.equal(table["section"], INFERENCE))  # noqa: F405
    return {name: inference[name].combine_chunks() for name in ("id", "domain", *further)}


def large_matrix(shape: tuple[int, int], folder: Path | None) -> NDArray[np.float16]:
    """Return a matrix of zeros, a large one mapped from a file without a name in ``folder``. Raises
    ``OSError`` where the disk is full."""
    size = 2 * math.prod(shape)
    if size < MAPPED:
        return np.zeros(shape, dtype=np.float16)
    with tempfile.TemporaryFile(dir=folder) as handle:
        os.posix_fallocate(handle.fileno(), 0, size)
        return np.asarray(np.memmap(handle, np.float16, "r+", shape=shape))


def write_vectors(
    path: Path,
    blocks: Iterable[NDArray[np.float16]],
    texts: Mapping[str, pa.Array],
    metadata: Mapping[str, Any],
) -> None:
    """Write the table of embeddings: columns ``texts`` (n,) and blocks of vectors (n, width)."""

    def columns() -> Iterator[pa.Table]:
        table = pa.table(dict(texts))
        for block in blocks:
            vectors = pa.FixedSizeListArray.from_arrays(pa.array(block.reshape(-1)), block.shape[1])
            yield table.slice(0, len(block)).append_column("embedding", vectors)
            table = table.slice(len(block))

    write_table(path, schemas.EMBEDDINGS, columns(), metadata=metadata)


def publish(folder: Path, tables: Iterable[tuple[Table, Any]], metadata: Mapping[str, Any]) -> None:
    """Write result tables, each as ``{name}.parquet`` and, for people, ``{name}.csv``."""
    for kind, rows in tables:
        table = _cast(kind, rows) if isinstance(rows, list) else rows
        write_table(folder / f"{kind.name}.parquet", kind, table, metadata=metadata)
        write_csv(folder / f"{kind.name}.csv", table)


def write_csv(path: str | Path, table: pa.Table) -> None:
    """Write a table for people: six significant digits, nulls as empty cells, and an apostrophe
    before a text that a spreadsheet would run."""

    def cell(value: Any) -> Any:
        if isinstance(value, float):
            return f"{value:.6g}"
        # Readers end a row at a carriage return, which the writer leaves unquoted.
        text = value.replace("\r", "\n") if isinstance(value, str) else ""
        return f"'{text}" if FORMULA.match(text) else text or value

    columns = [map(cell, column.to_pylist()) for column in table.columns]
    with atomic(path) as draft, draft.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerows([table.column_names, *zip(*columns, strict=True)])
