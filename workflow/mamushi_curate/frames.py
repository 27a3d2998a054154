"""Tables in memory: pandas, pyarrow, `datasets` or Polars; read through Arrow."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mamushi.data.cells import python_values
from mamushi.errors import UserError, located
from mamushi_curate.tables.lines import check_columns
from mamushi_curate.tables.readers import column_names, select

IN_FRAME = "the frame"


class Frame:
    """A table in memory, in the order of its rows. Raises ``UserError`` for what is none and, in
    pandas, for an index in which rows cannot be told apart."""

    def __init__(self, source: Any) -> None:
        self._wrap: Any = None
        self.is_pandas, self.is_dataset = hasattr(source, "iloc"), hasattr(source, "select_columns")
        is_arrow = hasattr(source, "__arrow_c_stream__")
        if isinstance(source, Mapping) or not (self.is_pandas or self.is_dataset or is_arrow):
            do = "give a table of pandas, pyarrow or Polars, or one split of datasets"
            raise UserError(f"{type(source).__name__} is no one table", where=IN_FRAME, do=do)
        if not (self.is_pandas or self.is_dataset or isinstance(source, pa.Table)):
            self._wrap, source = type(source), pa.table(source)
        self.source = source
        self.names = [*(source.columns if self.is_pandas else source.column_names)]
        self.marks: dict[str, pa.Array] = {}
        """By name, columns of booleans beside those of the frame."""
        if self.is_pandas and not source.index.is_unique:
            do = "call reset_index(drop=True) first"
            raise UserError("its index has a label twice", where=IN_FRAME, do=do)

    def __len__(self) -> int:
        return len(self.source)

    def column(self, name: str) -> Any:
        """Return a column as the frame has it. Raises ``UserError`` without exactly one."""
        if name in self.marks:
            return self.marks[name]
        outer = name.partition(".")[0]
        if name not in self.names and outer in self.names:
            table = pa.table({outer: arrow(self.column(outer), f"column {outer!r}")})
            check_columns(IN_FRAME, column_names(table.schema), [name])
            return select(table, [name])[name]
        check_columns(IN_FRAME, self.names, [name])
        if self.is_dataset:
            return self.source.select_columns([name]).with_format("arrow")[:][name]
        return self.source[name]

    def table(self, needed: Sequence[str], *, others: bool = False) -> pa.Table:
        """Return the columns ``needed``, and ``others`` that Arrow can hold."""
        columns = {name: arrow(self.column(name), f"column {name!r}") for name in needed}
        for name in [name for name in self.names if others and name not in columns]:
            with suppress(UserError, pa.ArrowException, ValueError, TypeError, OverflowError):
                columns[name] = arrow(self.column(name), name)
        return pa.table(columns)

    def expression(self, marking: Any, domain: str) -> str:
        """Return the expression that marks a domain: one as it is given; else that the column of
        this name, or the array, is 1. Raises ``UserError`` for others than 0 and 1 or booleans."""
        is_name = isinstance(marking, str)
        if is_name and marking not in self.names:
            return str(marking)
        where = f"column {marking!r}" if is_name else domain
        column = self.column(marking) if is_name else marking
        self.check_rows(column, where)
        values = values_of(column, where)
        if others := sorted({f"{value!r:.40}" for value in values if value not in (0, 1)}):
            problem = f"holds {', '.join(others[:5])}, not 0 and 1 or booleans"
            example = f"`{marking}` == {others[0]}" if is_name else "toxic >= 0.5"
            do = f'say which rows are meant, such as {domain}="{example}"'
            raise UserError(problem, where=where, do=do)
        if is_name:
            return f"`{marking}` == 1"
        self.marks[f"marks: {domain}"] = pa.array([value == 1 for value in values])
        return f"`marks: {domain}`"

    def check_rows(self, values: Any, where: str) -> None:
        """Raise ``UserError`` unless ``values`` has the frame's rows: as many, and in pandas with
        the same index."""
        if len(values) != len(self):
            problem = f"has {len(values):,} rows, and the frame {len(self):,}"
            raise UserError(problem, where=where)
        index: Any = getattr(values, "index", None)
        if self.is_pandas and hasattr(index, "equals") and not index.equals(self.source.index):
            raise UserError("has another index than the frame", where=where, do="align them first")

    def vectors(self, embeddings: Any, n_beside: int = 0) -> NDArray[np.float32]:
        """Return vectors (n, width), an array or the name of a column, in the order of the rows; of
        an array also those of ``n_beside`` texts behind them. Raises ``UserError`` for another
        shape."""
        where, column = "embeddings", embeddings
        if isinstance(embeddings, str):
            where, column = f"column {embeddings!r}", self.column(embeddings)
            column = [*(column.to_numpy() if isinstance(column, pa.ChunkedArray) else column)]
        elif not n_beside:
            self.check_rows(embeddings, where)
        with located(where), np.errstate(over="ignore"):
            array = np.asarray(column, dtype=np.float32)
        if array.ndim != 2 or len(array) != len(self) + n_beside:
            beside = (
                f", with {n_beside:,} of like and unlike behind the frame's" if n_beside else ""
            )
            problem = f"is an array {array.shape}, not ({len(self) + n_beside:,}, width){beside}"
            raise UserError(problem, where=where)
        return array

    def select(self, stays: NDArray[np.bool_]) -> Any:
        """Return the rows that stay (n,), as a frame of the same kind."""
        if self.is_dataset:
            return self.source.select(np.flatnonzero(stays))
        table = self.source[stays] if self.is_pandas else self.source.filter(stays)
        return table if self._wrap is None else self._wrap(table)


def arrow(column: Any, where: str) -> pa.ChunkedArray | pa.Array:
    """Return a column as Arrow has it, null where a value is missing. NaN is missing, too, but in a
    column of numbers, where it is one. Raises what Arrow does for values of several types."""
    if isinstance(column, pa.ChunkedArray | pa.Array):
        return column
    of_floats = getattr(getattr(column, "dtype", None), "kind", "") == "f"
    with located(where):
        return pa.array(column, from_pandas=not of_floats)


def values_of(column: Any, where: str) -> list[Any]:
    """Return the values of a column as those of Python. Raises ``UserError`` as ``arrow``."""
    array = arrow(column, where)
    return [value for chunk in getattr(array, "chunks", [array]) for value in python_values(chunk)]


def texts_of(values: Any, text: str, name: str) -> list[Any]:
    """Return texts that are given in a list or any iterable, or in the column ``text`` of a frame.
    Raises ``UserError`` for one text, or several by name."""
    if isinstance(values, str | Mapping):
        problem = f"{values!r:.60} is no list of texts"
        raise UserError(problem, where=name, do="give a list, or a frame with the text column")
    if hasattr(values, "columns") or hasattr(values, "column_names"):
        values = Frame(values).column(text)
    return values_of(values if hasattr(values, "__len__") else [*values], name)


def write_texts(folder: Path, name: str, texts: Sequence[Any]) -> str:
    """Write texts, or ``terms``, that are given beside a corpus to a file, and return its path."""
    if name == "terms":
        path = folder / "terms.txt"
        path.write_text("\n".join(" ".join(term.splitlines()) for term in texts), "utf-8")
    else:
        path = folder / f"{name}.parquet"
        with located(name):
            pq.write_table(pa.table({"text": pa.array(texts, pa.string())}), path)
    return str(path)
