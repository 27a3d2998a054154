"""Vectors that another program made: read in parts, and put in the order of the texts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mamushi.data.readers import check_columns, name_of
from mamushi.errors import UserError

_ROWS = 16384
"""Rows that are read at once."""

VectorPart = tuple[list[str], NDArray[Any]]
"""Ids, and their vectors (ids, width)."""


def parquet(path: Path, identifier: str, vector: str) -> Iterator[VectorPart]:
    """Iterate over the rows of a Parquet file by its columns of ids and of vectors.

    Raises ``UserError`` for a damaged file, a missing column or id, and a column that does not hold
    lists of numbers of one length.
    """
    width, rows = None, 0
    lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    numbers = (pa.types.is_floating, pa.types.is_integer)
    try:
        # The schema of the columns, and not of the leaves that a list has.
        file = pq.ParquetFile(path)
        check_columns(path, file.schema_arrow.names, [identifier, vector])
        kind = file.schema_arrow.field(vector).type
        if not any(check(kind) for check in lists) or not any(
            check(kind.value_type) for check in numbers
        ):
            problem = f"column {vector!r} holds {kind}, not lists of numbers"
            raise UserError(problem, where=path, do="name the column of the vectors")
        for batch in file.iter_batches(_ROWS, columns=[identifier, vector]):
            column, names = batch.column(vector), batch.column(identifier).to_pylist()
            ids = [name_of(value) or "" for value in names]
            for row, name in enumerate(ids, rows + 1):
                if not name:
                    where = f"{path.name}, row {row}"
                    raise UserError("there is no id", where=where, do="give every row its id")
            rows += len(ids)
            if pa.types.is_fixed_size_list(kind):
                lengths = np.full(len(ids), kind.list_size)
            else:
                lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy()
            lengths = np.where(column.is_null().to_numpy(zero_copy_only=False), 0, lengths)
            width = int(lengths[0]) if width is None and ids else width
            if (odd := np.flatnonzero(lengths != width)).size:
                row = odd[0]
                problem = f"the vector of {ids[row]!r} has {lengths[row]} numbers, and the first"
                do = "give all texts vectors of one width"
                raise UserError(f"{problem} one of the file {width}", where=path, do=do)
            flat = pc.cast(column.flatten(), pa.float32()).to_numpy(zero_copy_only=False)
            yield ids, flat.reshape(len(ids), -1)
    except (pa.ArrowException, OSError) as error:
        problem = f"damaged or not a Parquet file ({str(error).splitlines()[0]})"
        raise UserError(problem, where=path, do="make it again") from None


def aligned(
    parts: Iterator[VectorPart],
    ids: Sequence[str],
    dataset_ids: Collection[str],
    n_left_out: int,
    where: object,
) -> NDArray[np.float16]:
    """Return the vectors (ids, width) of ``ids``, in their order.

    ``known`` are the ids of the dataset; of its rows that are not among them there are ``others``,
    and no more unknown ids than these are taken. Raises ``UserError`` for an id that occurs twice
    or is unknown, a text without a vector, and a vector that float16 cannot hold.
    """

    def mistake(problem: str, do: str) -> UserError:
        return UserError(problem, where=where, do=do)

    row_of = {name: row for row, name in enumerate(ids)}
    seen: set[str] = set()
    unknown: list[str] = []
    vectors: NDArray[np.float16] | None = None
    for names, part in parts:
        for name in names:
            if name in seen:
                raise mistake(f"the id {name!r} is there more than once", "give every id once")
            seen.add(name)
        unknown += [name for name in names if name not in dataset_ids]
        if vectors is None:
            vectors = np.zeros((len(ids), part.shape[1]), dtype=np.float16)
        here = [place for place, name in enumerate(names) if name in row_of]
        with np.errstate(over="ignore", invalid="ignore"):
            small = part[here].astype(np.float16)
        if (odd := np.flatnonzero(~np.isfinite(small).all(axis=1))).size:
            name = names[here[odd[0]]]
            problem = f"the vector of {name!r} has NaN, infinity or a number above 65504"
            raise mistake(problem, "give finite vectors, scaled alike")
        vectors[[row_of[names[place]] for place in here]] = small
    lacking = [name for name in ids if name not in seen]
    if lacking or vectors is None:
        problem = (
            f"{len(lacking)} of the {len(ids)} texts that are ranked have no vector, the first is"
        )
        do = "embed all texts, under the ids of the dataset"
        such_as = f"; its ids are such as {unknown[0]!r}" if unknown else ""
        raise mistake(f"{problem} {lacking[0]!r}{such_as}", do)
    if len(unknown) > n_left_out:
        problem = f"{len(unknown)} of its {len(seen)} ids are not in the dataset, the first is"
        raise mistake(f"{problem} {unknown[0]!r}", "give vectors of this dataset's texts")
    return vectors
