"""Parquet files, Arrow streams and Arrow files, opened once and read a piece at a time."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mamushi.data.compact import cells_of
from mamushi.data.opening import held, kind_of_file
from mamushi.errors import UserError
from mamushi.io import tabular

ARROW_FILE = b"ARROW1"


@dataclass(frozen=True)
class Reader:
    """A Parquet file, Arrow file or Arrow stream that is open; a stream is read once."""

    path: Path
    source: Any

    @property
    def schema(self) -> Any:
        """Return the schema as Arrow has it."""
        return self.source.schema_arrow if self.is_parquet else self.source.schema

    @property
    def is_parquet(self) -> bool:
        """Return whether its blocks are row groups; of Arrow they are record batches."""
        return tabular.format_of(self.path) == "parquet"

    def blocks(self, names: list[str] | None = None) -> Iterator[tuple[Any, Any]]:
        """Iterate over its blocks as tables, with some columns or all, and the metadata that a
        record batch has of its own. Raises ``UserError`` for what is damaged."""
        import pyarrow as pa

        if self.is_parquet:
            for number in range(self.source.num_row_groups):
                with library_errors(self.path):
                    table = self.source.read_row_group(number, columns=names)
                yield table, None
            return
        count = getattr(self.source, "num_record_batches", None)
        for number in itertools.count() if count is None else range(count):
            with library_errors(self.path):
                try:
                    if count is None:
                        block = self.source.read_next_batch_with_custom_metadata()
                    else:
                        block = self.source.get_batch_with_custom_metadata(number)
                except StopIteration:
                    return
                # The library takes on trust where each value begins and ends.
                block.batch.validate(full=True)
                table = pa.Table.from_batches([block.batch])
            yield table if names is None else table.select(names), block.custom_metadata


def open_reader(path: Path, handle: Any, int96: str = "ns") -> Reader:
    """Return the reader of an open file, whatever was read of it; ``int96``: the unit in which old
    times of Parquet are read. Raises ``UserError`` for a damaged file, or one of another kind."""
    if tabular.format_of(path) == "parquet":
        return Reader(path, _open_parquet(path, handle, int96))
    return Reader(path, _open_arrow(path, handle))


@contextlib.contextmanager
def opened_columns(
    path: Path, digests: dict[str, str] | None = None
) -> Iterator[tuple[Any, Callable[[list[str] | None], Iterator[Any]]]]:
    """Open a Parquet file, an Arrow file or an Arrow stream: its schema, and a function that reads
    its row groups or record batches one by one as tables, with some columns or all (None).

    Raises ``UserError`` for a damaged file and what cannot be read, also while it is read;
    ``digests`` as of ``opening.open_unpacked``.
    """
    with held(path, digests) as handle:
        reader = open_reader(path, handle)
        yield reader.schema, lambda names: (table for table, _ in reader.blocks(names))


@contextlib.contextmanager
def library_errors(path: Path) -> Iterator[None]:
    """Turn what a library says of a file into a ``UserError``: what it cannot do is no damage."""
    import pyarrow as pa

    parquet = tabular.format_of(path) == "parquet"
    try:
        yield
    except NotImplementedError as error:
        problem = f"holds what cannot be read here ({error})"
        raise UserError(problem, where=path, do="write that column as numbers or text") from None
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # The file system's, perhaps of what is written meanwhile.
        if "encrypt" in str(error).lower():
            do = "write it without encryption"
            raise UserError(f"is encrypted ({error})", where=path, do=do) from None
        expected = "a Parquet file" if parquet else "an Arrow stream or file"
        problem = f"damaged or not {expected} ({error})"
        raise UserError(problem, where=path, do="make it again") from None


def _open_parquet(path: Path, handle: Any, int96: str) -> Any:
    import pyarrow.parquet as pq

    _check_head(path, handle, (b"PAR1",), "a Parquet file")
    with library_errors(path):
        # A file by itself: the names of folders above it are no columns.
        return pq.ParquetFile(handle, coerce_int96_timestamp_unit=int96)


def _open_arrow(path: Path, handle: Any) -> Any:
    import pyarrow as pa

    head = _check_head(path, handle, (ARROW_FILE, b"\xff\xff\xff\xff"), "an Arrow stream or file")
    with library_errors(path):
        if head.startswith(ARROW_FILE):
            return pa.ipc.open_file(handle)
        return pa.ipc.open_stream(handle)


def _check_head(path: Path, handle: Any, magics: tuple[bytes, ...], expected: str) -> bytes:
    """Return the first bytes of a file. Raises ``UserError`` for one that begins as another one."""
    handle.seek(0)
    head = bytes(handle.read(512))
    handle.seek(0)
    if not head or head.startswith(magics):
        return head
    if foreign := kind_of_file(head):
        raise UserError(f"is {foreign[0]}, not {expected}", where=path, do=foreign[1])
    if any(magic.startswith(head[: len(magic)]) for magic in magics):
        return head  # Cut short.
    problem = f"is not {expected}: it begins with {head[:16]!r}"
    raise UserError(problem, where=path, do="name it by what it is, or make it again")


def values(column: Any, name: str, path: Path) -> list[Any]:
    """Return the cells of an Arrow column, as ``cells_of``."""
    import pyarrow as pa

    try:
        return [cell for piece in getattr(column, "chunks", [column]) for cell in cells_of(piece)]
    except (ValueError, OverflowError, NotImplementedError, pa.ArrowException) as error:
        problem = f"column {name!r} holds {column.type} that cannot be read ({error})"
        raise UserError(problem, where=path, do="write it as numbers or UTF-8 text") from None
