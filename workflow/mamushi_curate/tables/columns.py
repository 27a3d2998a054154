"""What columns of a user's table hold: the types of cells that are text; numbers, dates and
categories in those that no setting names, which may give the domain away."""

import contextlib
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mamushi.data.cells import to_arrow
from mamushi.errors import UserError
from mamushi_curate.tables.lines import USUAL, Dialect
from mamushi_curate.tables.readers import columns, table_rows

HEAD, MOST_VALUES = 1000, 50
"""Rows by which the columns are chosen, and the most values of a category."""


def other_columns(path: str | Path, needed: Sequence[str], dialect: Dialect = USUAL) -> list[str]:
    """Return the columns of a table beside the ``needed`` ones that its first rows show to hold
    numbers, dates or at most ``MOST_VALUES`` values."""
    names = [name for name in columns(path, dialect) if name not in needed]
    # An error would be of a column that nobody asked for.
    with contextlib.suppress(UserError):
        cells = [row for _, row in islice(table_rows(path, names, dialect), HEAD)]
        kinds = {name: numbers_or_categories([row.get(name) for row in cells]) for name in names}
        return [name for name in names if kinds[name] is not None]
    return []


def numbers_or_categories(column: Sequence[Any]) -> NDArray[Any] | None:
    """Return numbers and dates of a column (n,) as float64 with NaN, or its categories as strings
    with None; None where it has neither, but texts, lists or more than ``MOST_VALUES`` values."""
    try:
        values = to_arrow(column)
    except (pa.ArrowException, TypeError, ValueError):
        return None
    kind = values.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        filled = pc.if_else(pc.equal(values, ""), None, values)
        for types in ((pa.float64(),), (pa.timestamp("us"), pa.int64())):
            with contextlib.suppress(pa.ArrowException):
                for other in types:
                    filled = filled.cast(other)
                return np.asarray(filled.cast(pa.float64(), safe=False).to_numpy())
        if pc.count_distinct(values).as_py() > min(MOST_VALUES, len(values) / 2):
            return None
        # One string for all of its rows.
        encoded = values.combine_chunks().dictionary_encode()
        names = np.array([*encoded.dictionary.to_pylist(), None], dtype=object)
        return np.asarray(names[pc.fill_null(encoded.indices, -1).to_numpy()])
    if pa.types.is_temporal(kind):
        values = values.cast(pa.int64()) if values.type.bit_width == 64 else values.cast(pa.int32())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        return None
    return np.asarray(values.cast(pa.float64(), safe=False).to_numpy())


def column_of(cells: Any, *, typed: bool) -> Any:
    """Return cells of a column as Arrow has them. Where they are not ``typed``, as in CSV, texts
    become booleans or numbers if all that are not empty can; whole numbers beyond 64 bits stay
    texts. Raises ``pa.ArrowException`` or ``OverflowError`` for cells of several types."""
    column = to_arrow(cells)
    if typed:
        # Arrow compares no numbers of 16 bits; as decimals they are what was written.
        return pa.chunked_array([[*cells]]) if pa.types.is_float16(column.type) else column
    text = pc.utf8_trim_whitespace(filled(column))
    if pc.all(pc.is_in(pc.utf8_lower(text), pa.array(["true", "false", None]))).as_py():
        return pc.equal(pc.utf8_lower(text), "true")
    is_long = pc.any(pc.match_substring_regex(text, r"^[+-]?\d{16,}$")).as_py()
    for kind in (pa.int64(), pa.int64() if is_long else pa.float64()):
        with contextlib.suppress(pa.ArrowException):
            return text.cast(kind)
    return column


def filled(column: Any) -> Any:
    """Return a column in which texts of white space are null: text formats have no other way to say
    that a cell is empty."""
    if not pa.types.is_string(column.type):
        return column
    empty = pc.equal(pc.utf8_trim_whitespace(column), "")
    return pc.if_else(empty, pa.scalar(None, pa.string()), column)
