"""Tables in memory: pandas, pyarrow, `datasets`, a list of rows, or columns by name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mamushi.data.compact import Compact, cells_of, plain
from mamushi.data.expression import parse
from mamushi.data.readers import FileTable, check_columns, check_text, name_of
from mamushi.errors import UserError
from mamushi_extras.unlabelled.terms import PATTERN

_KNOWN = (
    "give a pandas DataFrame, a pyarrow Table, one split of datasets, a list of dicts or a dict of "
    "columns"
)
TYPES = {"pandas.DataFrame": "pandas", "pyarrow.Table": "arrow", "datasets.Dataset": "datasets"}
SPLITS = "datasets.DatasetDict"
_MARKS = "column of marks"
"""The column in which marks are that were given as an array."""
IN_FRAME = "the frame"
BREAK = re.compile(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_SHOWN = 5
"""Values that a message lists."""
_NARROW = (np.float16, np.float32)
"""Types of numbers that are kept, for constants have their precision."""


class Frame:
    """A table in memory. Raises ``UserError`` for what is none, for columns of several lengths and,
    in pandas, an index in which rows cannot be told apart."""

    def __init__(self, source: Any) -> None:
        self.source, self.kind = source, _kind(source)
        if self.kind == "columns" and len(sizes := {len(column) for column in source.values()}) > 1:
            problem = f"its columns have {min(sizes)} to {max(sizes)} rows"
            raise UserError(problem, where=IN_FRAME, do="give them one length")
        if self.kind == "pandas" and not source.index.is_unique:
            problem = f"its index has {_plain(source.index[source.index.duplicated()][0])!r} twice"
            raise UserError(problem, where=IN_FRAME, do="call reset_index(drop=True) first")
        if not len(self):
            raise UserError("no rows", where=IN_FRAME, do="give one with texts")

    def __len__(self) -> int:
        if self.kind == "columns":
            return len(next(iter(self.source.values()), ()))
        return len(self.source)

    @cached_property
    def names(self) -> list[str]:
        """Return the names of the columns; of rows, the keys of all of them."""
        if self.kind == "rows":
            return list(dict.fromkeys(key for row in self.source for key in row))
        if self.kind == "columns":
            return list(self.source)
        return list(self.source.columns if self.kind == "pandas" else self.source.column_names)

    def column(self, name: str) -> Any:
        """Return a column as the frame has it. Raises ``UserError`` without exactly one."""
        check_columns(IN_FRAME, self.names, [name])
        if self.kind == "rows":
            return [row.get(name) for row in self.source]
        if self.kind == "datasets":
            return self.source.select_columns([name]).with_format("arrow")[:][name]
        return self.source[name]

    def read(self, needed: Sequence[str], marks: Mapping[str, list[bool]]) -> FileTable:
        """Return the columns ``needed``, of which the ``marks`` are none of the frame's."""
        columns = {
            name: marks[name]
            if name in marks
            else frame_cells(self.column(name), f"column {name!r}")
            for name in needed
        }
        places = [f"{IN_FRAME}, row {row + 1}" for row in range(len(self))]
        return FileTable(IN_FRAME, columns, places, typed=True)

    def aligned(self, values: Any, where: str) -> None:
        """Raise ``UserError`` unless ``values`` has the frame's rows: as many, and in pandas with
        the same index."""
        if len(values) != len(self):
            problem = f"has {len(values):,} rows, and the frame {len(self):,}"
            raise UserError(problem, where=where, do="give one for each row, in their order")
        index: Any = getattr(values, "index", None)
        labelled = self.kind == "pandas" and hasattr(index, "equals")
        if labelled and not index.equals(self.source.index):
            raise UserError("has another index than the frame", where=where, do="align them first")

    def keep(self, kept: NDArray[np.bool_]) -> Any:
        """Return the rows ``kept`` (n,), as a frame of the same kind."""
        if self.kind == "datasets":
            return self.source.select(np.flatnonzero(kept))
        if self.kind == "columns":
            return {name: _part(column, kept) for name, column in self.source.items()}
        return _part(self.source, kept)


def _kind(source: Any) -> str:
    names = [f"{of.__module__.partition('.')[0]}.{of.__qualname__}" for of in type(source).__mro__]
    if SPLITS in names:
        raise UserError("has several splits", where=IN_FRAME, do="give one of them")
    for name in names:
        if name in TYPES:
            return TYPES[name]
    if isinstance(source, Mapping):
        return "columns"
    if isinstance(source, list | tuple) and all(isinstance(row, Mapping) for row in source):
        return "rows"
    raise UserError(f"{type(source).__name__} is no table that is known", where=IN_FRAME, do=_KNOWN)


def _part(column: Any, kept: NDArray[np.bool_]) -> Any:
    if isinstance(column, list | tuple):
        return type(column)(value for value, stays in zip(column, kept, strict=True) if stays)
    if isinstance(column, pa.Table | pa.ChunkedArray | pa.Array):
        return column.filter(pa.array(kept))
    return column[kept]


def frame_cells(column: Any, where: str) -> Sequence[Any]:
    """Return the values of a column as those of Python, None where one is missing. NaN is missing,
    too, but in a column of numbers, where it is one. Raises ``UserError`` for a column that has no
    values of one type."""
    if isinstance(column, list | tuple):
        column = [_plain(value) for value in column]
        if not any(isinstance(value, _NARROW) for value in column):
            numbers = all(
                value is None or isinstance(value, int | float | Decimal) for value in column
            )
            return [None if _is_nan(value) and not numbers else value for value in column]
    try:
        if not isinstance(column, pa.ChunkedArray | pa.Array):
            of_floats = getattr(getattr(column, "dtype", None), "kind", "") == "f"
            column = pa.array(column, from_pandas=not (of_floats or isinstance(column, list)))
        cells = Compact()
        for piece in getattr(column, "chunks", [column]):
            cells.add(plain(piece))
            # Raises for what has no value in Python.
            cells_of(piece)
        return cells
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        do = "give its cells one type: numbers, booleans or text"
        raise UserError(f"cannot be read ({error})", where=where, do=do) from None


def _plain(value: Any) -> Any:
    if isinstance(value, np.longdouble):
        return float(value)
    if isinstance(value, np.generic) and not isinstance(value, _NARROW):
        value = value.item()
    return None if type(value).__name__ in ("NAType", "NaTType") else value


def _is_nan(value: Any) -> bool:
    return isinstance(value, float | Decimal) and value != value


def names_of(table: FileTable, id: str | None) -> list[str]:
    """Return the id of each row of a table, the number of the row from 1 without a column."""
    if id is None:
        return [str(row + 1) for row in range(len(table.places))]
    return [name_of(value) or "" for value in table.columns[id]]


def mark(frame: Frame, marking: Any, name: str) -> tuple[dict[str, Any], list[bool] | None]:
    """Return what marks a domain as the configuration has it, and the marks themselves if it is
    an array of them. Raises ``UserError`` for a column, or an array, that does not say by 0 and 1,
    or false and true, which rows are meant."""
    if isinstance(marking, Mapping):
        return dict(marking), None
    if isinstance(marking, str) and marking not in frame.names:
        parse(marking).check(frame.names, IN_FRAME)
        return {"where": marking}, None
    where = f"column {marking!r}" if isinstance(marking, str) else name
    if not isinstance(marking, str):
        if np.ndim(marking) != 1:
            do = "give a column of 0 and 1, an expression such as 'toxic >= 0.5', or an array (n,)"
            raise UserError(f"{marking!r:.40} marks no rows", where=where, do=do)
        frame.aligned(marking, where)
    column = frame.column(marking) if isinstance(marking, str) else marking
    values: list[Any] = [None if _is_nan(value) else value for value in frame_cells(column, where)]
    if None in values:
        problem, do = (
            f"row {values.index(None) + 1} has no value",
            "say in an expression what it means",
        )
        raise UserError(
            problem, where=where, do=f"{do}, as in {name}='toxic is null or toxic == 1'"
        )
    if {type(value) for value in values} not in ({bool}, {int}) or not {*values} <= {0, 1}:
        some = sorted({*values}, key=str)
        shown = ", ".join(f"{value!r:.40}" for value in some[:_SHOWN])
        rest = f" and {len(some) - _SHOWN} more" if len(some) > _SHOWN else ""
        example = (
            f'"`{marking}` == {some[0]!r}"' if isinstance(marking, str) else "frame.toxic >= 0.5"
        )
        do = f"say which rows are meant, such as {name}={example}"
        raise UserError(f"holds {shown}{rest}, not 0 and 1 or booleans", where=where, do=do)
    if isinstance(marking, str):
        return {"column": marking, "values": [type(values[0])(1)]}, None
    return {"column": f"{_MARKS}: {name}", "values": [True]}, [value == 1 for value in values]


def examples_of(marked: bool, beside: Mapping[str, Sequence[str]]) -> dict[str, Sequence[str]]:
    """Return what is given in the place of marks. Raises ``UserError`` for both, and none."""
    unmarked = {name: texts for name, texts in beside.items() if len(texts)}
    marking = [*(["forget"] if marked else []), *(unmarked.keys() - {"unlike"})]
    if len(marking) != 1:
        problem = f"{' and '.join(sorted(marking)) or 'nothing'} to mark the unwanted texts"
        raise UserError(problem, do="give one of forget, like and terms")
    if marked and unmarked:
        raise UserError("unlike beside forget", do="give the texts to keep in retain")
    return unmarked


def in_files(folder: Path, text: str, beside: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Write texts and terms that are given beside a corpus, by name, to files, and return these as
    a configuration has them. Raises ``UserError`` for what is no text, or empty."""
    files = {}
    for name, values in beside.items():
        if isinstance(values, str):
            raise UserError(f"{values!r:.60} is one text", where=name, do="give a list of texts")
        texts = frame_cells(values, name)
        for row, one_text in enumerate(texts, start=1):
            if not (isinstance(one_text, str) and one_text.strip()):
                problem, do = (
                    f"{one_text!r:.60} is no text",
                    "give a list of texts, none of them empty",
                )
                raise UserError(problem, where=f"{name}, row {row}", do=do)
            check_text(one_text, f"{name}, row {row}")
        files[name] = str(folder / f"{name}{'.txt' if name == 'terms' else '.parquet'}")
        if name == "terms":
            Path(files[name]).write_text("\n".join(map(_line, texts)), encoding="utf-8")
        else:
            pq.write_table(pa.table({text: texts}), files[name])
    return files


def _line(term: str) -> str:
    """Return a term on one line: an expression has its breaks by their numbers."""
    if PATTERN.fullmatch(term.strip()):
        return BREAK.sub(lambda match: rf"\u{ord(match[0]):04x}", term.strip())
    return " ".join(term.split())


def vectors(frame: Frame, embeddings: Any, n_beside: int = 0) -> NDArray[np.float32]:
    """Return vectors (n, width), an array or the name of a column, in the order of the rows; of an
    array also those of ``n_beside`` texts behind them. Raises ``UserError`` for another shape, and
    for what holds no numbers."""
    where = "embeddings"
    if n_beside and (isinstance(embeddings, str) or len(embeddings) != len(frame) + n_beside):
        texts = f"{len(frame):,} rows of the frame and {n_beside:,} of like and unlike"
        problem = f"is no array of {texts}"
        raise UserError(
            problem, where=where, do="give the vectors of these behind those of the frame"
        )
    try:
        if isinstance(embeddings, str):
            where = f"column {embeddings!r}"
            column = frame.column(embeddings)
            array = _flat(column) if isinstance(column, pa.ChunkedArray) else np.array([*column])
        else:
            if not n_beside:
                frame.aligned(embeddings, where)
            array = np.asarray(embeddings)
    except (TypeError, ValueError, RuntimeError) as error:
        do = "give numbers (texts, width), as a NumPy array or a column of lists of one length"
        raise UserError(f"cannot be read as vectors ({error})", where=where, do=do) from None
    if array.ndim != 2 or not array.shape[1] or array.dtype.kind not in "fiu":
        problem = f"is an array {array.shape} of {array.dtype}, not numbers (texts, width)"
        raise UserError(problem, where=where, do="give a vector for each row, all of one width")
    with np.errstate(over="ignore"):
        return array.astype(np.float32)


def _flat(column: pa.ChunkedArray) -> NDArray[Any]:
    """Return the lists of a column as the rows of an array."""
    lengths = pc.unique(pc.list_value_length(column))
    if column.null_count or len(lengths) != 1:
        raise ValueError("its lists are of several lengths, or missing")
    return np.asarray(column.combine_chunks().flatten().to_numpy()).reshape(len(column), -1)
