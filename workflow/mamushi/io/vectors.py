"""The table of embeddings, and matrices that may be larger than the memory."""

import math
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
from mamushi.io.tables import INFERENCE, read_table, write_table

MAPPED = 2**30
"""Bytes from which a matrix lies in a file that is mapped into memory."""


def ranked(examples: Path, *further: str) -> dict[str, pa.Array]:
    """Return the columns ``id`` and ``domain``, and ``further`` ones, of the texts that have a
    vector."""
    table = read_table(examples, schemas.EXAMPLES, ["id", "domain", "section", *further])
    inference = table.filter(pc.equal(table["section"], INFERENCE))
    return {name: inference[name].combine_chunks() for name in ("id", "domain", *further)}


def large_matrix(shape: tuple[int, int], folder: Path | None) -> NDArray[np.float16]:
    """Return a matrix of zeros; a large one in a file in ``folder`` without a name, of which the
    system keeps in memory what fits. Raises ``OSError`` where the disk is full."""
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
    """Write the table of embeddings, with the columns ``texts`` (n,) and vectors (n, width) that
    come in ``blocks``."""

    def columns() -> Iterator[dict[str, pa.Array]]:
        start = 0
        for block in blocks:
            rows = {name: column.slice(start, len(block)) for name, column in texts.items()}
            vectors = pa.FixedSizeListArray.from_arrays(pa.array(block.reshape(-1)), block.shape[1])
            yield {**rows, "embedding": vectors}
            start += len(block)

    write_table(path, schemas.EMBEDDINGS, columns(), metadata=metadata)
