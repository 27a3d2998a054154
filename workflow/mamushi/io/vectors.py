"""Tables of vectors, and matrices of them that may be larger than the memory."""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mamushi.io import schemas
from mamushi.io.tables import INFERENCE, read_table, writing

BLOCK = 131072
"""Texts: eight row groups of a table of vectors, 1 GiB at a width of 4,096."""
TAKEN = 2**11
"""Rows of a mapped matrix that are taken at a time."""
MAPPED = 2**30
"""Bytes from which a matrix lies in a file that is mapped into memory."""


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


def blocks_of(matrix: NDArray[np.float16]) -> Iterator[NDArray[np.float16]]:
    """Yield a ``large_matrix`` (n, width) as blocks."""
    for start in range(0, max(len(matrix), 1), BLOCK):
        yield matrix[start : start + BLOCK]
        drop_pages(matrix)


def write_vectors(
    path: Path,
    blocks: Iterable[NDArray[np.float16]],
    texts: Mapping[str, pa.Array],
    metadata: Mapping[str, Any],
) -> None:
    """Write the table of embeddings, with the columns ``texts`` (n,) and vectors (n, width) that
    come in ``blocks``."""
    with writing(path, schemas.EMBEDDINGS, metadata=metadata) as write:
        for number, block in enumerate(blocks):
            names = {name: column.slice(number * BLOCK, BLOCK) for name, column in texts.items()}
            flat = pa.array(block.reshape(-1))
            write({**names, "embedding": pa.FixedSizeListArray.from_arrays(flat, block.shape[1])})


def read_vectors(path: Path) -> NDArray[np.float16]:
    """Return the vectors (n, width) of a table of embeddings."""
    column = read_table(path, schemas.EMBEDDINGS)["embedding"].combine_chunks()
    matrix: NDArray[np.float16] = column.flatten().to_numpy().reshape(len(column), -1)
    return matrix
