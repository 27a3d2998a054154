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

from mamushi.errors import UserError, located
from mamushi.io.domains import name_of
from mamushi.io.tables import large_matrix
from mamushi_curate.vectors import IDS

_ROWS = 16384  # Read at once.


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
    further ids of the dataset, ``n_left_out`` the rows that have neither. Without a column of ids
    they are numbers ``by_row``, from 1.

    Raises ``UserError`` for an id that is missing, there twice or unknown, and a vector that
    float16 cannot hold; ``ValueError`` for lists of several lengths."""
    where = files[0] if len(files) == 1 else files[0].parent
    known, n = pa.chunked_array([ranked, *others.chunks]), len(ranked)
    times, unknown = np.zeros(len(known), np.int64), list[str | None]()
    vectors = np.empty((0, 0), np.float16)
    for path in files:
        with located(path):
            for ids, block in _blocks(path, *names):
                if not len(vectors):
                    vectors = large_matrix((n, block.shape[1]), folder)
                if block.shape[1] != vectors.shape[1]:
                    raise ValueError(f"vectors of {block.shape[1]} and {vectors.shape[1]} numbers")
                places = pc.index_in(ids, value_set=known)
                unknown += ids.filter(places.is_null()).to_pylist()
                place = places.fill_null(len(known)).to_numpy()
                times += np.bincount(place, minlength=len(known) + 1)[:-1]
                rows = np.flatnonzero(place < n)
                with np.errstate(over="ignore", invalid="ignore"):
                    small = block[rows].astype(np.float16)
                if not (finite := np.isfinite(small).all(axis=1)).all():
                    name = ids[int(rows[finite.argmin()])].as_py()
                    problem = f"the vector of {name!r} has NaN, infinity or a number above 65504"
                    raise UserError(problem, do="give finite vectors, scaled alike")
                vectors[place[rows]] = small
    lacking, problem = np.flatnonzero(times[:n] == 0), ""
    if lacking.size:
        first = ranked[int(lacking[0])].as_py()
        problem = f"{len(lacking)} of the {n} texts that are ranked have no vector, the first is"
        problem += f" {first!r}" + (f"; unknown are ids such as {unknown[0]!r}" if unknown else "")
    elif times.max() > 1:
        problem = f"the id {known[int(times.argmax())].as_py()!r} is there more than once"
    elif len(unknown) > n_left_out or (by_row and "0" in unknown):
        problem = f"{len(unknown)} of its ids are not in the dataset, the first is {unknown[0]!r}"
    if problem:
        do = "give each text its vector under its id in the dataset (--id); rows count from 1"
        raise UserError(problem, where=where, do=do)
    return vectors


def _blocks(path: Path, identifier: str, vector: str) -> Iterator[tuple[pa.Array, NDArray[Any]]]:
    """Iterate over the ids (rows,), null where there is none, and vectors (rows, width) of a
    shard."""
    if path.suffix == ".safetensors":
        lines = path.with_suffix(IDS).read_text("utf-8").removesuffix("\n").split("\n")
        with safe_open(path, "np") as tensors:
            rows = tensors.get_slice(vector)
            if len(lines) != (count := rows.get_shape()[0]):
                raise ValueError(f"{len(lines)} ids, and {count} vectors")
            for start in range(0, count, _ROWS):
                stop = min(start + _ROWS, count)
                names = [line or None for line in lines[start:stop]]
                yield pa.array(names, pa.string()), rows[start:stop]
        return
    # Without, all that is read ahead stays in memory to the end.
    file = pq.ParquetFile(path, pre_buffer=False)
    for batch in file.iter_batches(_ROWS, columns=[identifier, vector]):
        column = batch[vector]
        if column.null_count or len(pc.unique(pc.list_value_length(column))) > 1:
            raise ValueError(f"the lists of {vector!r} are of several lengths, or missing")
        flat = pc.cast(column.flatten(), pa.float32()).to_numpy(zero_copy_only=False)
        names = pa.array([*map(name_of, batch[identifier].to_pylist())], pa.string())
        yield names, flat.reshape(len(column), -1)
