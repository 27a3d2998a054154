"""Columns of many rows: a part of their bytes is in memory, the rest in temporary files, in the
folder that ``TMPDIR`` names. Arrow is imported where cells are packed, since every dry run comes
here."""

from __future__ import annotations

import mmap
import tempfile
import weakref
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import compress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

ROWS, CHARACTERS = 2**16, 2**26
"""Limits of a piece."""
HELD = 2**27
"""Bytes of a column's pieces in memory. Those beyond are mapped from files without names."""
_mapped: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()


class Compact(Sequence[Any]):
    """Cells of rows, in pieces that are Arrow arrays where all are text or None: a string of Python
    takes some 60 bytes beside its own."""

    def __init__(self, cells: Iterable[Any] = ()) -> None:
        self._pieces: list[pa.Array | list[Any]] = []
        self._starts, self._last, self._characters = [0], list[Any](), 0
        self._held = 0
        for cell in cells:
            self.append(cell)

    def append(self, cell: Any) -> None:
        """Add a cell at the end."""
        self._last.append(cell)
        self._characters += len(cell) if isinstance(cell, str) else 0
        if len(self._last) == ROWS or self._characters >= CHARACTERS:
            self._flush()

    def changed(self, change: Callable[[Any], Any]) -> Compact:
        """Return the column with each cell as ``change`` has it. A piece in which that is as it was
        is shared."""
        column = Compact()
        for piece in self._all():
            cells = _cells(piece)
            changed = [*map(change, cells)]
            same = all(a is b for a, b in zip(cells, changed, strict=True))
            column._add(piece if same else _packed(changed), shared=same)
            release_pages()
        return column

    def kept(self, kept: NDArray[np.bool_]) -> Compact:
        """Return the cells that are ``kept``, (n,)."""
        column = Compact()
        for piece, start in zip(self._all(), self._starts, strict=False):
            of_piece = kept[start : start + len(piece)]
            if isinstance(piece, list):
                for cell in compress(piece, of_piece.tolist()):
                    column.append(cell)
            else:
                column._flush()
                same = bool(of_piece.all())
                column._add(piece if same else piece.filter(of_piece), shared=same)
            release_pages()
        return column

    def arrow(self) -> pa.ChunkedArray | None:
        """Return the cells as an Arrow column; None where some are no text."""
        import pyarrow as pa

        pieces = [_packed(piece) if isinstance(piece, list) else piece for piece in self._all()]
        if any(isinstance(piece, list) for piece in pieces):
            return None
        return pa.chunked_array(pieces, pa.string())

    def __len__(self) -> int:
        return self._starts[-1] + len(self._last)

    def __iter__(self) -> Iterator[Any]:
        for piece in self._all():
            cells = _cells(piece)
            release_pages()
            yield from cells

    def __eq__(self, column: object) -> bool:
        if isinstance(column, str) or not isinstance(column, Sequence) or len(column) != len(self):
            return False
        return all(a == b for a, b in zip(self, column, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self[row] for row in range(*at.indices(len(self)))]
        row = range(len(self))[at]
        number = bisect_right(self._starts, row) - 1
        piece = self._last if number == len(self._pieces) else self._pieces[number]
        cell = piece[row - self._starts[number]]
        return cell if isinstance(piece, list) else cell.as_py()

    def pieces(self) -> Iterator[pa.Array]:
        """Iterate over Arrow arrays of a column whose cells are all text or None."""
        for piece in self._all():
            yield _packed(piece) if isinstance(piece, list) else piece
            release_pages()

    def _flush(self) -> None:
        cells, self._last, self._characters = self._last, [], 0
        if cells:
            self._add(_packed(cells))

    def _add(self, piece: pa.Array | list[Any], *, shared: bool = False) -> None:
        """Add a piece, which is in memory or on disk already where it is ``shared``."""
        if not (shared or isinstance(piece, list)):
            self._held += piece.nbytes
            piece = piece if self._held <= HELD else _on_disk(piece)
        self._pieces.append(piece)
        self._starts.append(self._starts[-1] + len(piece))

    def _all(self) -> list[pa.Array | list[Any]]:
        return [*self._pieces, *([self._last] if self._last else [])]


def strings(cells: Iterable[str | None]) -> pa.ChunkedArray:
    """Return cells that are text or None as an Arrow column."""
    import pyarrow as pa

    column = (cells if isinstance(cells, Compact) else Compact(cells)).arrow()
    return pa.chunked_array([pa.array(cells, pa.string())]) if column is None else column


def some(column: Any, kept: NDArray[np.bool_]) -> Any:
    """Return the cells that are ``kept`` (n,), of any column of n rows."""
    if kept.all():
        return column
    if hasattr(column, "dtype"):
        return column[kept]
    return column.kept(kept) if isinstance(column, Compact) else [*compress(column, kept.tolist())]


def release_pages() -> None:
    """Let go of what of the temporary files is in memory; it is read again where it is needed."""
    for pages in _mapped:
        pages.madvise(mmap.MADV_DONTNEED)


@contextmanager
def where_temporary() -> Iterator[None]:
    """Within the block, have an ``OSError`` say in which folder temporary files are."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, tempfile.gettempdir()) from None


def _on_disk(piece: pa.Array) -> pa.Array:
    """Return a piece that lies in a file of its own, which goes with it."""
    import pyarrow as pa

    written = pa.record_batch([piece], names=["cells"]).serialize()
    with where_temporary(), tempfile.TemporaryFile() as handle:
        handle.write(written)
        handle.flush()
        pages = mmap.mmap(handle.fileno(), len(written), access=mmap.ACCESS_READ)
    _mapped.add(pages)
    schema = pa.schema([("cells", piece.type)])
    return pa.ipc.read_record_batch(pa.py_buffer(pages), schema).column(0)


def _cells(piece: pa.Array | list[Any]) -> list[Any]:
    return piece if isinstance(piece, list) else piece.to_pylist()


def _packed(cells: list[Any]) -> pa.Array | list[Any]:
    """Return cells as an Arrow array if they are text or None, and UTF-8 can hold that: it holds no
    lone surrogates, which whoever reads such a cell refuses with its place."""
    import pyarrow as pa

    if not all(cell is None or isinstance(cell, str) for cell in cells):
        return cells
    try:
        packed = pa.array(cells, pa.string())
    except UnicodeEncodeError:
        return cells
    # One of more than 2 GiB is in several pieces.
    return packed if isinstance(packed, pa.Array) else cells
