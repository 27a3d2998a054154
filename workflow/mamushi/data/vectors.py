"""Vectors that another program made, in one file or in shards: read in parts, and put in the order
of the texts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mamushi.config.sources import IDS, MANIFEST
from mamushi.data.compact import strings
from mamushi.data.readers import check_columns, name_of
from mamushi.errors import UserError
from mamushi.io.shards import drop_pages, large_matrix

_ROWS = 16384
"""Rows that are read at once."""
STATED = ("model", "pooling", "layer")
"""What metadata of a file, or a manifest beside, may say of how its vectors were made."""

VectorPart = tuple[Sequence[str], NDArray[Any]]
"""Ids, and their vectors (ids, width)."""


def shards(
    files: Sequence[Path], identifier: str, vector: str, says: Mapping[str, str]
) -> Iterator[VectorPart]:
    """Iterate over the rows of shards, one after another: of Parquet by the columns of ids and of
    vectors, of safetensors by the tensor ``vector``, with the ids, one a line, in a file of its
    name with the ending .txt.

    Raises ``UserError`` as ``parquet``, for shards of several widths, for those that say of how
    they were made something else than a manifest beside them, or the configuration (``says``), and
    where that asks for what nothing says.
    """
    stated = {name: (str(value), "the configuration") for name, value in says.items()}
    for manifest in {path.parent / MANIFEST for path in files}:
        if manifest.is_file():
            _agree(stated, json.loads(manifest.read_text(encoding="utf-8")), manifest)
    width: int | None = None
    for path in files:
        packed = path.suffix == ".safetensors"
        _agree(stated, _tensors_metadata(path) if packed else _parquet_metadata(path), path)
        parts = _tensors(path, vector) if packed else parquet(path, identifier, vector)
        for ids, vectors in parts:
            if len(ids) and width not in (None, vectors.shape[1]):
                problem = f"has vectors of {vectors.shape[1]} numbers, and {files[0].name} {width}"
                raise UserError(problem, where=path, do="embed all texts alike")
            width = vectors.shape[1] if len(ids) else width
            yield ids, vectors
    for name, (value, where) in stated.items():
        if where == "the configuration":
            problem = f"no file says its {name}, which has to be {value!r}"
            do = f"write {MANIFEST} beside the shards, or leave that out of 'says'"
            raise UserError(problem, where=files[0], do=do)


def _agree(stated: dict[str, tuple[str, str]], here: Mapping[str, Any], path: Path) -> None:
    """Note what a file says of its vectors. Raises ``UserError`` where it was stated otherwise."""
    for name in here.keys() & {*STATED, *stated}:
        value, where = stated.get(name, (str(here[name]), path.name))
        if str(here[name]) != value:
            problem = f"says {name} {here[name]!r}, and {where} {value!r}"
            raise UserError(problem, where=path, do="embed all texts alike")
        stated[name] = value, path.name


def _parquet_metadata(path: Path) -> dict[str, str]:
    try:
        metadata = pq.read_schema(path).metadata or {}
    except (pa.ArrowException, OSError) as error:
        raise _damaged(path, error) from None
    return {key.decode(): value.decode(errors="replace") for key, value in metadata.items()}


def _tensors_metadata(path: Path) -> dict[str, str]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "np") as file:
            return file.metadata() or {}
    except (SafetensorError, OSError) as error:
        raise _damaged(path, error) from None


def _tensors(path: Path, vector: str) -> Iterator[VectorPart]:
    """Iterate over the rows of a tensor, with the ids beside."""
    from safetensors import safe_open

    beside = path.with_suffix(IDS)
    if not beside.is_file():
        raise UserError("has no ids beside it", where=path, do=f"write them to {beside.name}")
    ids = beside.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    with safe_open(path, "np") as file:
        if vector not in file.keys():  # noqa: SIM118
            problem = f"has no tensor {vector!r}, but {', '.join(sorted(file.keys()))}"
            raise UserError(problem, where=path, do="name the tensor of the vectors")
        rows = file.get_slice(vector)
        shape = rows.get_shape()
        if len(shape) != 2 or shape[0] != len(ids) or not rows.get_dtype().startswith("F"):
            problem = f"tensor {vector!r} is {rows.get_dtype()} {shape}, with {len(ids)} ids"
            raise UserError(problem, where=path, do="give a row of floats for each id")
        if "" in ids:
            where = f"{beside.name}, line {ids.index('') + 1}"
            raise UserError("there is no id", where=where, do="give every row its id")
        for start in range(0, len(ids), _ROWS):
            stop = min(start + _ROWS, len(ids))
            yield ids[start:stop], rows[start:stop]


def _damaged(path: Path, error: Exception) -> UserError:
    kind = "safetensors" if path.suffix == ".safetensors" else "Parquet"
    problem = f"damaged or not a {kind} file ({str(error).splitlines()[0]})"
    return UserError(problem, where=path, do="make it again")


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
        # Without, all that is read ahead stays in memory to the end.
        file = pq.ParquetFile(path, pre_buffer=False)
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
        raise _damaged(path, error) from None


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
