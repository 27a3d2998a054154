"""Vectors that another program made, in one file or in shards: read in parts, and put in the order
of the texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mamushi.config.sources import IDS
from mamushi.data.compact import strings
from mamushi.data.readers import check_columns, name_of
from mamushi.errors import UserError
from mamushi.io.vectors import drop_pages, large_matrix

_ROWS = 16384
"""Rows that are read at once."""

VectorPart = tuple[Sequence[str], NDArray[Any]]
"""Ids, and their vectors (ids, width)."""


def shards(files: Sequence[Path], identifier: str, vector: str) -> Iterator[VectorPart]:
    """Iterate over the rows of shards, one after another: of Parquet by the columns of ids and of
    vectors, of safetensors by the tensor ``vector``, with the ids, one a line, in a file of its
    name with the ending .txt.

    Raises ``UserError`` for a damaged file, a missing column or id, and for what holds no lists of
    numbers of one length.
    """
    from safetensors import SafetensorError

    for path in files:
        row, read = 1, _tensors if path.suffix == ".safetensors" else _parquet
        try:
            for ids, vectors in read(path, identifier, vector):
                if "" in ids:
                    where = f"{path.name}, row {row + [*ids].index('')}"
                    raise UserError("there is no id", where=where, do="give every row its id")
                row += len(ids)
                yield ids, vectors
        except (pa.ArrowException, SafetensorError, OSError, ValueError) as error:
            problem = f"cannot be read as ids and vectors ({str(error).splitlines()[0]})"
            do = "name the columns of ids and of vectors of one width, or make it again"
            raise UserError(problem, where=path, do=do) from None


def _tensors(path: Path, identifier: str, vector: str) -> Iterator[VectorPart]:
    """Iterate over the rows of a tensor, with the ids beside."""
    from safetensors import safe_open

    ids = path.with_suffix(IDS).read_text(encoding="utf-8").removesuffix("\n").split("\n")
    with safe_open(path, "np") as file:
        rows = file.get_slice(vector)
        if len(shape := rows.get_shape()) != 2 or shape[0] != len(ids):
            raise ValueError(f"tensor {vector!r} is {shape}, with {len(ids)} ids")
        for start in range(0, len(ids), _ROWS):
            stop = min(start + _ROWS, len(ids))
            yield ids[start:stop], rows[start:stop]


def _parquet(path: Path, identifier: str, vector: str) -> Iterator[VectorPart]:
    """Iterate over the rows of a Parquet file by its columns of ids and of vectors."""
    # Without, all that is read ahead stays in memory to the end.
    file = pq.ParquetFile(path, pre_buffer=False)
    check_columns(path, file.schema_arrow.names, [identifier, vector])
    for batch in file.iter_batches(_ROWS, columns=[identifier, vector]):
        column, ids = batch.column(vector), batch.column(identifier).to_pylist()
        lengths = pc.list_value_length(column)
        if column.null_count or len(pc.unique(lengths)) > 1:
            raise ValueError(f"the lists of {vector!r} are of several lengths, or missing")
        flat = pc.cast(column.flatten(), pa.float32()).to_numpy(zero_copy_only=False)
        yield [name_of(value) or "" for value in ids], flat.reshape(len(ids), -1)


class _Ids:
    """Ids, each with its place, found again without a string of Python for each."""

    def __init__(self, ids: pa.ChunkedArray) -> None:
        self.ids, self.next = ids, 0
        self._sorted: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None

    def places(self, names: Sequence[str]) -> NDArray[np.int64]:
        """Return the places of ``names`` (m,), -1 for one that is not here."""
        n = len(names)
        if self.ids.slice(self.next, n).to_pylist() == [*names]:
            # In the order of the texts, as most programs write them.
            self.next += n
            return np.arange(self.next - n, self.next)
        if self._sorted is None:
            names_here = (name for chunk in self.ids.chunks for name in chunk.to_pylist())
            codes = np.fromiter(map(hash, names_here), np.int64, len(self.ids))
            order = np.argsort(codes, kind="stable")
            self._sorted = codes[order], order
        codes, order = self._sorted
        if not len(codes):
            return np.full(n, -1)
        codes_asked = np.fromiter(map(hash, names), np.int64, n)
        at = np.minimum(np.searchsorted(codes, codes_asked), len(codes) - 1)
        places = np.where(codes[at] == codes_asked, order[at], -1)
        here = np.flatnonzero(places >= 0)
        same = [self.ids[int(places[i])].as_py() == names[i] for i in here.tolist()]
        places[here[~np.array(same, dtype=np.bool_)]] = -1
        return places


def aligned(
    parts: Iterable[VectorPart],
    ids: Iterable[str] | pa.ChunkedArray,
    further_ids: Iterable[str] | pa.ChunkedArray,
    n_left_out: int,
    where: object,
    folder: Path | None = None,
) -> NDArray[np.float16]:
    """Return the vectors (ids, width) of ``ids``, in their order; large ones in a file without a
    name in ``folder``.

    ``further_ids`` are other ids of the dataset; of its rows, ``n_left_out`` have neither, and no
    more unknown ids than these are taken. Raises ``UserError`` for an id that occurs twice or is
    unknown, a text without a vector, and a vector that float16 cannot hold.
    """

    def mistake(problem: str, do: str) -> UserError:
        return UserError(problem, where=where, do=do)

    ranked, beside = (_Ids(_column(names)) for names in (ids, further_ids))
    n, total = len(ranked.ids), 0
    seen = np.zeros(n + len(beside.ids), dtype=np.bool_)
    unknown: dict[str, None] = {}
    vectors: NDArray[np.float16] | None = None
    for names, part in parts:
        places = ranked.places(names)
        elsewhere = np.flatnonzero(places < 0).tolist()
        if elsewhere:
            rest = beside.places([names[i] for i in elsewhere])
            places[elsewhere] = np.where(rest < 0, -1, rest + n)
        if (name := _repeated(names, seen[places] & (places >= 0), unknown)) is not None:
            raise mistake(f"the id {name!r} is there more than once", "give every id once")
        seen[places[places >= 0]] = True
        unknown |= dict.fromkeys(names[i] for i in elsewhere if places[i] < 0)
        total += len(names)
        if vectors is None:
            vectors = large_matrix((n, part.shape[1]), folder)
        if vectors.shape[1] != part.shape[1]:
            problem = f"has vectors of {part.shape[1]} numbers beside some of {vectors.shape[1]}"
            raise mistake(problem, "embed all texts alike")
        here = np.flatnonzero((places >= 0) & (places < n))
        with np.errstate(over="ignore", invalid="ignore"):
            small = part[here].astype(np.float16)
        if (odd := np.flatnonzero(~np.isfinite(small).all(axis=1))).size:
            problem = f"the vector of {names[here[odd[0]]]!r} has NaN, infinity or a number above"
            raise mistake(f"{problem} 65504", "give finite vectors, scaled alike")
        vectors[places[here]] = small
        drop_pages(vectors)
    lacking = n - int(seen[:n].sum())
    if lacking or vectors is None:
        first = ranked.ids[int(np.argmin(seen[:n]))].as_py()
        problem = (
            f"{lacking} of the {n} texts that are ranked have no vector, the first is {first!r}"
        )
        such_as = f"; its ids are such as {next(iter(unknown))!r}" if unknown else ""
        do = "embed all texts, under the ids of the dataset"
        raise mistake(f"{problem}{such_as}", do)
    if len(unknown) > n_left_out:
        problem = f"{len(unknown)} of its {total} ids are not in the dataset, the first is"
        do = "give vectors of this dataset's texts"
        raise mistake(f"{problem} {next(iter(unknown))!r}", do)
    return vectors


def _column(names: Iterable[str] | pa.ChunkedArray) -> pa.ChunkedArray:
    return names if isinstance(names, pa.ChunkedArray) else strings(names)


def _repeated(
    names: Sequence[str], was_there: NDArray[np.bool_], unknown: Mapping[str, None]
) -> str | None:
    """Return the first of ``names`` that ``was_there`` (m,) or is ``unknown`` already, or stands
    here twice; None if none does."""
    here: set[str] = set()
    for name, repeated in zip(names, was_there.tolist(), strict=True):
        if repeated or name in unknown or name in here:
            return name
        here.add(name)
    return None
