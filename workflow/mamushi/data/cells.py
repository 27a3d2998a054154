"""Columns of many rows as Arrow has them: a string of Python takes some 60 bytes beside its own."""

import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

ROWS = 1024  # Stored at a time: of texts of 2 MB the most that an array holds.


class Cells(Sequence[Any]):
    """The values of an Arrow column, as those of Python; where it ``is_json``, what texts mean."""

    def __init__(self, column: pa.ChunkedArray, is_json: bool = False) -> None:
        self.column, self.is_json = column, is_json

    def __len__(self) -> int:
        return len(self.column)

    def __iter__(self) -> Iterator[Any]:
        for chunk in self.column.chunks:
            values = python_values(chunk)
            yield from map(json.loads, values) if self.is_json else values

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [*Cells(self.column[at], self.is_json)]
        return self[at : at + 1 or None][0]


def python_values(column: pa.Array) -> list[Any]:
    """Return the values of an Arrow array as those of Python, None for null; a number of fewer than
    64 bits is the shortest decimal that means it there, as others print it."""
    array = plain_array(column)
    values: list[Any] = array.to_pylist()
    if array.type in (pa.float16(), pa.float32()):
        numbers = map(str, array.to_numpy(zero_copy_only=False))
        return [None if x is None else float(n) for x, n in zip(values, numbers, strict=True)]
    return values


def plain_array(array: pa.Array) -> pa.Array:
    """Return an array whose values stand in it one by one; text is of one type."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    elif pa.types.is_run_end_encoded(array.type):
        array = pc.run_end_decode(array)
    is_text = pa.types.is_large_string(array.type) or pa.types.is_string_view(array.type)
    return array.cast(pa.string()) if is_text else array


def to_cells(rows: Iterable[Sequence[str | None]], width: int = 1) -> list[Cells]:
    """Return an iterator of rows, each of ``width`` strings or None, as columns. They are built a
    block at a time by ``mapped_table``."""
    schema = pa.schema([(str(number), pa.string()) for number in range(width)])
    source = iter(rows)
    blocks = (
        pa.record_batch([*map(pa.array, zip(*block, strict=True), schema.types)], schema)
        for block in iter(lambda: list(islice(source, ROWS)), [])
    )
    return [Cells(column) for column in mapped_table(schema, blocks).columns]


def mapped_table(schema: pa.Schema, blocks: Iterable[pa.Table | pa.RecordBatch]) -> pa.Table:
    """Return rows that come in blocks in an Arrow file without a name, mapped into memory."""
    with tempfile.NamedTemporaryFile() as file:
        with pa.ipc.new_file(file, schema) as writer:
            for block in blocks:
                writer.write(block)
        file.flush()
        return pa.ipc.open_file(pa.memory_map(file.name)).read_all()


def to_arrow(column: Any) -> pa.ChunkedArray:
    """Return any column as Arrow has it. Raises as ``pa.array``."""
    if isinstance(column, Cells):
        return pa.chunked_array([[*column]]) if column.is_json else column.column
    return pa.chunked_array([pa.array(column)])


def take(column: Any, chosen: NDArray[Any]) -> Any:
    """Return cells of any column of n rows, or None: those ``chosen`` (n,), or of these numbers."""
    is_mask = chosen.dtype == np.bool_
    if column is None or (is_mask and chosen.all()):
        return column
    if isinstance(column, np.ndarray):
        return column[chosen]
    if isinstance(column, Cells) and is_mask:
        return Cells(column.column.filter(chosen), column.is_json)
    return [column[row] for row in np.arange(len(column))[chosen].tolist()]
