"""Tables that are made in blocks, which fit into memory, and by several jobs, each of which makes
a shard: some of the rows, beside the others until they are joined."""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mamushi.errors import UserError
from mamushi.io import schemas
from mamushi.io.schemas import Table
from mamushi.io.tables import INFERENCE, read_groups, read_metadata, read_table, writing

BLOCK = 131072
"""Texts: eight row groups of a table of vectors, 1 GiB at a width of 4,096."""
TAKEN = 2**11
"""Rows of a mapped matrix that are taken at a time."""
MAPPED = 2**30
"""Bytes from which a matrix lies in a file that is mapped into memory."""

Columns = Mapping[str, NDArray[np.float16]]
"""By column vectors (m, width)."""
Piece = tuple[NDArray[np.int64], Columns]
"""Rows of the table (m,), ascending and of one block, and what they have in its columns."""


def ranked(examples: Path, *further: str) -> dict[str, pa.Array]:
    """Return the columns ``id`` and ``domain``, and ``further`` ones, of the texts that have a
    vector."""
    table = read_table(examples, schemas.EXAMPLES, ["id", "domain", "section", *further])
    inference = table.filter(pc.equal(table["section"], INFERENCE))
    return {name: inference[name].combine_chunks() for name in ("id", "domain", *further)}


def large_matrix(shape: tuple[int, int], folder: Path | None) -> NDArray[np.float16]:
    """Return a matrix of zeros; a large one, if there is a ``folder``, in a file there without a
    name, whose pages the system drops as it needs. Raises ``OSError`` where the disk is full."""
    size = 2 * shape[0] * shape[1]
    if size < MAPPED or folder is None:
        return np.zeros(shape, dtype=np.float16)
    with tempfile.TemporaryFile(dir=folder) as handle:
        os.posix_fallocate(handle.fileno(), 0, size)
        return np.frombuffer(mmap.mmap(handle.fileno(), size), np.float16).reshape(shape)


def drop_pages(matrix: NDArray[np.float16]) -> None:
    """Let go of the memory of a ``large_matrix``, which is read again from its file."""
    if (pages := _pages(matrix)) is not None:
        pages.madvise(mmap.MADV_DONTNEED)


def take_rows(matrix: NDArray[np.float16], rows: NDArray[np.int64]) -> NDArray[np.float16]:
    """Return ``rows`` of a matrix. Of a large one, a part at a time: the system maps sixteen pages
    for one that is read."""
    if _pages(matrix) is None:
        return matrix[rows]
    chosen = np.empty((len(rows), matrix.shape[1]), matrix.dtype)
    for start in range(0, len(rows), TAKEN):
        part = slice(start, start + TAKEN)
        chosen[part] = matrix[rows[part]]
        drop_pages(matrix)
    return chosen


def _pages(matrix: NDArray[np.float16]) -> mmap.mmap | None:
    below: Any = matrix
    while isinstance(below, np.ndarray | memoryview):
        below = below.base if isinstance(below, np.ndarray) else below.obj
    return below if isinstance(below, mmap.mmap) else None


def write_matrix(
    path: Path,
    kind: Table,
    matrix: NDArray[np.float16],
    texts: Mapping[str, pa.Array],
    metadata: Mapping[str, Any],
) -> None:
    """Write a table of vectors whose column ``embedding`` is ``matrix`` (n, width)."""
    with writing(path, kind, metadata=metadata) as write:
        for start in range(0, max(len(matrix), 1), BLOCK):
            names = {name: column.slice(start, BLOCK) for name, column in texts.items()}
            write(names | _arrays({"embedding": matrix[start : start + BLOCK]}))
            drop_pages(matrix)


def write_pieces(
    path: Path,
    kind: Table,
    pieces: Iterable[Piece],
    texts: Mapping[str, pa.Array],
    metadata: Mapping[str, Any],
    shard: str | None = None,
    *,
    beside: bool = False,
) -> None:
    """Write a table of vectors whose ``pieces`` are its blocks, or a ``shard`` of it (``2-of-8``)
    of its own. ``texts`` are the table's columns ``id`` and ``domain``. Of several processes, which
    all take part in each piece, those ``beside`` the first write nothing."""
    if beside:
        for _ in pieces:
            pass
        return
    if shard is None:
        with writing(path, kind, metadata=metadata) as write:
            for rows, vectors in pieces:
                write(
                    {name: of.take(pa.array(rows)) for name, of in texts.items()} | _arrays(vectors)
                )
        return
    with writing(path, schemas.SHARD, metadata={**metadata, "shard": shard}) as write:
        empty = True
        for rows, vectors in pieces:
            write({"row": rows, **_arrays(vectors)})
            empty = False
        if empty:
            # Of a dataset with fewer batches than shards.
            write({"row": np.empty(0, np.int64)})


def join_shards(
    path: Path,
    kind: Table,
    shards: Sequence[Path],
    texts: Mapping[str, pa.Array],
    examples: str,
) -> None:
    """Put the ``shards`` of a table of vectors together: byte by byte what one job would have
    written. ``examples`` is the digest of the examples table. Raises ``UserError`` as
    ``read_shards``, and for shards of other examples."""
    metadata = read_metadata(shards[0])
    del metadata["shard"]
    if metadata["inputs"]["examples"] != examples:
        problem, do = "is a shard of other examples", "delete the shards and run again"
        raise UserError(problem, where=shards[0], do=do)
    blocks = read_shards(shards, len(texts["id"]), metadata)
    with writing(path, kind, metadata=metadata) as write:
        for place, vectors in enumerate(blocks):
            names = {name: column.slice(place * BLOCK, BLOCK) for name, column in texts.items()}
            write(names | _arrays(vectors))


def read_shards(shards: Sequence[Path], n: int, origin: Mapping[str, Any]) -> Iterator[Columns]:
    """Return the columns of the ``shards`` of ``n`` texts, block by block.

    Raises ``UserError`` for a shard of another ``origin``, by settings, inputs or versions, and
    when they do not hold every text.
    """
    numbers = {}
    for shard in shards:
        metadata = read_metadata(shard)
        if differing := [name for name in origin if metadata.get(name) != origin[name]]:
            raise UserError(
                f"is a shard that was made with other {' and '.join(differing)}",
                where=shard,
                do="delete it and run again",
            )
        numbers[shard] = int(metadata["shard"].partition("-")[0])
    # A row group is of one block, and those of later shards are of later blocks.
    ordered = sorted(shards, key=numbers.__getitem__)
    groups = (part for path in ordered for part in read_groups(path, schemas.SHARD) if len(part))
    waiting = next(groups, None)
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        columns: dict[str, NDArray[np.float16]] = {}
        seen = np.zeros(stop - start, dtype=bool)
        while waiting is not None and waiting["row"][0].as_py() < stop:
            rows = waiting["row"].to_numpy() - start
            seen[rows] = True
            for name in waiting.column_names[1:]:
                column = waiting[name].combine_chunks()
                values = column.flatten().to_numpy().reshape(-1, column.type.list_size)
                if name not in columns:
                    columns[name] = np.empty((len(seen), *values.shape[1:]), values.dtype)
                columns[name][rows] = values
            waiting = next(groups, None)
        if not seen.all():
            raise UserError(
                f"{int((~seen).sum())} texts are in none of the {len(shards)} shards",
                where=ordered[0].parent,
                do="delete the shards and run again",
            )
        yield columns


def _arrays(columns: Columns) -> dict[str, pa.Array]:
    return {
        name: pa.FixedSizeListArray.from_arrays(pa.array(matrix.reshape(-1)), matrix.shape[1])
        for name, matrix in columns.items()
    }
