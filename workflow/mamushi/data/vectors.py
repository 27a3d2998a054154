"""Vectors that another program made, in one file or in shards: read in blocks, and put in the order
of the texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mamushi.config.sources import IDS
from mamushi.data.cells import Cells, store, strings
from mamushi.data.lines import check_columns
from mamushi.data.readers import name_of
from mamushi.errors import UserError, located
from mamushi.io.vectors import large_matrix

_ROWS = 16384
"""Rows that are read at once."""


def read_shards(
    files: Sequence[Path], identifier: str, vector: str
) -> tuple[Cells, Iterator[NDArray[Any]]]:
    """Return the ids of all rows of some shards, and their vectors (rows, width) in blocks: of
    Parquet by the columns of ids and of vectors, of safetensors the tensor ``vector``, with the
    ids, one a line, in a file of its name with the ending .txt.

    Raises ``UserError`` for a missing column or id; ``ValueError`` of the blocks for what holds no
    lists of numbers of one length, or another number of them than of ids.
    """
    counts: list[int] = []

    def ids() -> Iterator[str]:
        for path in files:
            counts.append(0)
            for name in _ids(path, identifier, vector):
                counts[-1] += 1
                if not name:
                    where = f"{path.name}, row {counts[-1]}"
                    raise UserError("there is no id", where=where, do="give every row its id")
                yield name

    (names,) = store(zip(ids()))

    def blocks() -> Iterator[NDArray[Any]]:
        for path, count in zip(files, counts, strict=True):
            rows = 0
            with located(path):
                for block in _blocks(path, vector):
                    rows += len(block)
                    yield block
                if rows != count:
                    raise ValueError(f"{rows} vectors, and {count} ids")

    return names, blocks()


def _ids(path: Path, identifier: str, vector: str) -> Iterator[str]:
    """Iterate over the ids of a shard, empty where there is none."""
    if path.suffix == ".safetensors":
        yield from path.with_suffix(IDS).read_text("utf-8").removesuffix("\n").split("\n")
        return
    with located(path):
        file = pq.ParquetFile(path, pre_buffer=False)
    check_columns(path, file.schema_arrow.names, [identifier, vector])
    for batch in file.iter_batches(columns=[identifier]):
        yield from (name_of(value) or "" for value in batch.column(0).to_pylist())


def _blocks(path: Path, vector: str) -> Iterator[NDArray[Any]]:
    """Iterate over the vectors of a shard."""
    from safetensors import safe_open

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


def aligned(
    ids: Iterable[str],
    blocks: Iterable[NDArray[Any]],
    ranked: Iterable[str],
    others: Iterable[str],
    n_left_out: int,
    where: object,
    folder: Path | None = None,
    *,
    by_row: bool = False,
) -> NDArray[np.float16]:
    """Return the vectors (ranked, width) of the ``ranked`` ids, in their order, of ``blocks`` with
    the vectors of all ``ids``; large ones in a file without a name in ``folder``.

    ``others`` are further ids of the dataset; of its rows, ``n_left_out`` have neither, and no
    more unknown ids than these are taken. Without a column of ids they are numbers ``by_row``, from
    1. Raises ``UserError`` for an id that occurs twice or is unknown, a text without a vector, and
    a vector that float16 cannot hold.
    """

    def mistake(problem: str, do: str) -> UserError:
        return UserError(problem, where=where, do=do)

    names, wanted, further = (strings(each) for each in (ids, ranked, others))
    n, known = len(wanted), pa.chunked_array([*wanted.chunks, *further.chunks], pa.string())
    if len(pc.unique(names)) < len(names):
        counts = pc.value_counts(names)
        name = counts.field("values").filter(pc.greater(counts.field("counts"), 1))[0]
        raise mistake(f"the id {name.as_py()!r} is there more than once", "give every id once")
    found = pc.index_in(names, value_set=known)
    unknown, places = names.filter(found.is_null()), found.fill_null(-1).to_numpy()
    if by_row and "0" in unknown.to_pylist():
        raise mistake("has the id '0', and rows are numbered from 1", "count rows from 1")
    is_ranked = (places >= 0) & (places < n)
    if (lacking := n - int(is_ranked.sum())) or not n:
        first = wanted[int(np.argmin(np.isin(np.arange(n), places[is_ranked])))].as_py()
        problem = f"{lacking} of the {n} texts that are ranked have no vector, the first is"
        such_as = f"; its ids are such as {unknown[0].as_py()!r}" if len(unknown) else ""
        do = "embed all texts, under the ids of the dataset"
        do += "; name their column with --id" if by_row else ""
        raise mistake(f"{problem} {first!r}{such_as}", do)
    if len(unknown) > n_left_out:
        problem = f"{len(unknown)} of its {len(names)} ids are not in the dataset, the first is"
        do = "give vectors of this dataset's texts"
        raise mistake(f"{problem} {unknown[0].as_py()!r}", do)
    vectors: NDArray[np.float16] | None = None
    start = 0
    for block in blocks:
        if vectors is None:
            vectors = large_matrix((n, block.shape[1]), folder)
        if vectors.shape[1] != block.shape[1]:
            problem = f"has vectors of {block.shape[1]} numbers beside some of {vectors.shape[1]}"
            raise mistake(problem, "embed all texts alike")
        here = start + np.flatnonzero(is_ranked[start : start + len(block)])
        with np.errstate(over="ignore", invalid="ignore"):
            small = block[here - start].astype(np.float16)
        if (odd := np.flatnonzero(~np.isfinite(small).all(axis=1))).size:
            name = names[int(here[odd[0]])].as_py()
            problem = f"the vector of {name!r} has NaN, infinity or a number above 65504"
            raise mistake(problem, "give finite vectors, scaled alike")
        vectors[places[here]] = small
        start += len(block)
    assert vectors is not None
    return vectors
