"""Vectors that another program made, in one file or in shards: read in blocks, and put in the order
of the texts."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from safetensors import safe_open

from mamushi.config.sources import IDS
from mamushi.errors import UserError, located
from mamushi.io.domains import name_of
from mamushi.io.vectors import large_matrix

_ROWS = 16384
"""Rows that are read at once."""


def read_aligned(
    files: Sequence[Path],
    names: tuple[str, str],
    ranked: pa.Array,
    others: pa.ChunkedArray,
    n_left_out: int,
    folder: Path | None = None,
    *,
    by_row: bool = False,
) -> NDArray[np.float16]:
    """Return the vectors (ranked, width) of the ``ranked`` ids, in their order; large ones in a
    file without a name in ``folder``.

    ``names`` are the columns of ids and vectors of Parquet; of safetensors the second is the
    tensor, and the ids, one a line, are in a file of its name with the ending .txt. ``others`` are
    further ids of the dataset; of its rows, ``n_left_out`` have neither, and no more unknown ids
    than these are taken. Without a column of ids they are numbers ``by_row``, from 1.

    Raises ``UserError`` for an id that is missing, there twice or unknown, and a vector that
    float16 cannot hold; ``ValueError`` for lists of several lengths.
    """
    where = files[0] if len(files) == 1 else files[0].parent
    of_files = [_ids(path, names[0]) for path in files]
    ids, n = pa.chunked_array(of_files, pa.string()), len(ranked)
    counts = pc.value_counts(ids)
    if ids.null_count or len(counts) < len(ids):
        name = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
        problem = f"the id {name[0].as_py()!r} is there more than once" if name else "lacks ids"
        raise UserError(problem, where=where, do="give every row its id, once")
    places = pc.index_in(ids, value_set=pa.chunked_array([ranked, *others.chunks]))
    unknown, place = ids.filter(places.is_null()), places.fill_null(-1).to_numpy()
    if by_row and "0" in unknown.to_pylist():
        problem = "has the id '0', and rows are numbered from 1"
        raise UserError(problem, where=where, do="count rows from 1")
    is_ranked = (place >= 0) & (place < n)
    if lacking := n - int(is_ranked.sum()):
        first = ranked[int(np.argmin(np.isin(np.arange(n), place[is_ranked])))].as_py()
        problem = f"{lacking} of the {n} texts that are ranked have no vector, the first is"
        such_as = f"; its ids are such as {unknown[0].as_py()!r}" if len(unknown) else ""
        do = "embed all texts, under the ids of the dataset"
        do += "; name their column with --id" if by_row else ""
        raise UserError(f"{problem} {first!r}{such_as}", where=where, do=do)
    if len(unknown) > n_left_out:
        problem = f"{len(unknown)} of its {len(ids)} ids are not in the dataset, the first is"
        do = "give vectors of this dataset's texts"
        raise UserError(f"{problem} {unknown[0].as_py()!r}", where=where, do=do)
    vectors = np.empty((0, 0), np.float16)
    start = 0
    for path, of_file in zip(files, of_files, strict=True):
        stop = start + len(of_file)
        with located(path):
            for block in _blocks(path, names[1]):
                width = block.shape[1]
                vectors = vectors if len(vectors) else large_matrix((n, width), folder)
                if width != vectors.shape[1]:
                    raise ValueError(f"vectors of {width} and {vectors.shape[1]} numbers")
                here = start + np.flatnonzero(is_ranked[start : start + len(block)])
                with np.errstate(over="ignore", invalid="ignore"):
                    small = block[here - start].astype(np.float16)
                if (odd := np.flatnonzero(~np.isfinite(small).all(axis=1))).size:
                    name = ids[int(here[odd[0]])].as_py()
                    problem = f"the vector of {name!r} has NaN, infinity or a number above 65504"
                    raise UserError(problem, where=where, do="give finite vectors, scaled alike")
                vectors[place[here]] = small
                start += len(block)
            if start != stop:
                raise ValueError(f"{len(of_file)} ids, and {len(of_file) + start - stop} vectors")
    return vectors


def _ids(path: Path, identifier: str) -> pa.Array:
    """Return the ids of a shard (n,), null where there is none."""
    if path.suffix == ".safetensors":
        lines = path.with_suffix(IDS).read_text("utf-8").removesuffix("\n").split("\n")
        return pa.array([line or None for line in lines])
    with located(path):
        column = pq.ParquetFile(path).read([identifier])[identifier]
        return pa.array([*map(name_of, column.to_pylist())], pa.string())


def _blocks(path: Path, vector: str) -> Iterator[NDArray[Any]]:
    """Iterate over the vectors (rows, width) of a shard."""
    if path.suffix == ".safetensors":
        with safe_open(path, "np") as tensors:
            rows = tensors.get_slice(vector)
            count = rows.get_shape()[0]
            for start in range(0, count, _ROWS):
                yield rows[start : min(start + _ROWS, count)]
        return
    # Without, all that is read ahead stays in memory to the end.
    for batch in pq.ParquetFile(path, pre_buffer=False).iter_batches(_ROWS, columns=[vector]):
        column = batch.column(0)
        if column.null_count or len(pc.unique(pc.list_value_length(column))) > 1:
            raise ValueError(f"the lists of {vector!r} are of several lengths, or missing")
        flat = pc.cast(column.flatten(), pa.float32()).to_numpy(zero_copy_only=False)
        yield flat.reshape(len(column), -1)
