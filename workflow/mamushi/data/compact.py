"""Columns of many rows as Arrow arrays: a string of Python takes some 60 bytes beside its own. What
is beyond ``HELD`` bytes of one lies in a file without a name, mapped into memory. Arrow is imported
where cells are packed, since every dry run comes here."""

from __future__ import annotations

import mmap
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

ROWS, CHARACTERS = 2**16, 2**26
"""Limits of a piece."""
HELD = 2**27
"""Bytes of a column's pieces in memory."""
_pages: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()


class Compact(Sequence[Any]):
    """Cells of rows, in pieces that are Arrow arrays where these were added, or all are text or
    None."""

    def __init__(self, cells: Iterable[Any] = ()) -> None:
        self._pieces: list[pa.Array | list[Any]] = []
        self._last, self._characters, self._length, self._held = list[Any](), 0, 0, 0
        for cell in cells:
            self.append(cell)

    def append(self, cell: Any) -> None:
        """Add a cell at the end."""
        self._last.append(cell)
        self._characters += len(cell) if isinstance(cell, str) else 0
        if len(self._last) == ROWS or self._characters >= CHARACTERS:
            self._flush()

    def add(self, piece: pa.Array | list[Any]) -> None:
        """Add the cells of an Arrow array, or of a list."""
        self._flush()
        self._length += len(piece)
        if not isinstance(piece, list):
            self._held += piece.nbytes
            piece = piece if self._held <= HELD else _mapped(piece)
        self._pieces.append(piece)

    def pieces(self) -> Iterator[pa.Array | list[Any]]:
        """Iterate over Arrow arrays, and lists of cells that are not all text or None."""
        self._flush()
        for piece in self._pieces:
            yield piece
            release_pages()

    def changed(self, change: Callable[[Any], Any]) -> Compact:
        """Return the column with each cell as ``change`` has it. A piece in which that is as it was
        is shared."""
        column = Compact()
        for piece in self.pieces():
            cells = cells_of(piece)
            changed = [*map(change, cells)]
            column.add(piece if changed == cells else _packed(changed))
        return column

    def kept(self, kept: NDArray[np.bool_]) -> Compact:
        """Return the cells that are ``kept``, (n,)."""
        column, start = Compact(), 0
        for piece in self.pieces():
            mask = kept[start : start + len(piece)]
            listed = [*compress(piece, mask)] if isinstance(piece, list) else piece.filter(mask)
            column.add(listed)
            start += len(piece)
        return column

    def arrow(self) -> pa.ChunkedArray:
        """Return the cells as an Arrow column. Raises ``pa.ArrowException`` or ``UnicodeError`` for
        cells of several types, and ``OverflowError`` for a number that no type has."""
        import pyarrow as pa

        self._flush()
        if len({None if isinstance(piece, list) else piece.type for piece in self._pieces}) > 1:
            return pa.chunked_array([pa.array([*self])])
        pieces = [pa.array(piece) if isinstance(piece, list) else piece for piece in self._pieces]
        return pa.chunked_array(pieces, None if pieces else pa.string())

    def __len__(self) -> int:
        return self._length + len(self._last)

    def __iter__(self) -> Iterator[Any]:
        for piece in self.pieces():
            yield from cells_of(piece)

    def __eq__(self, column: object) -> bool:
        return isinstance(column, Sequence) and [*self] == [*column]

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self[row] for row in range(*at.indices(len(self)))]
        row = range(len(self))[at]
        self._flush()
        for piece in self._pieces:
            if row < len(piece):
                return cells_of(piece[row : row + 1])[0]
            row -= len(piece)
        raise AssertionError

    def _flush(self) -> None:
        cells, self._last, self._characters = self._last, [], 0
        if cells:
            self.add(_packed(cells))


def cells_of(piece: pa.Array | list[Any]) -> list[Any]:
    """Return the cells of an Arrow array as values of Python, None for null; a number of fewer than
    64 bits is the shortest decimal that means it there, as others print it. Raises what
    ``to_pylist`` raises."""
    import pyarrow as pa

    if isinstance(piece, list):
        return piece
    piece = plain(piece)
    if not (pa.types.is_float16(piece.type) or pa.types.is_float32(piece.type)):
        return list(piece.to_pylist())
    numbers, missing = piece.to_numpy(zero_copy_only=False), piece.is_null().to_pylist()
    return [None if no else float(str(x)) for x, no in zip(numbers, missing, strict=True)]


def plain(piece: pa.Array) -> pa.Array:
    """Return an array whose values stand in it one by one; text is of one type."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(piece.type):
        piece = piece.dictionary_decode()
    elif pa.types.is_run_end_encoded(piece.type):
        piece = pc.run_end_decode(piece)
    is_text = pa.types.is_large_string(piece.type) or pa.types.is_string_view(piece.type)
    return piece.cast(pa.string()) if is_text else piece


def strings(cells: Iterable[str | None] | pa.ChunkedArray) -> pa.ChunkedArray:
    """Return cells that are text or None as an Arrow column."""
    import pyarrow as pa

    if not isinstance(cells, pa.ChunkedArray):
        cells = (cells if isinstance(cells, Compact) else Compact(cells)).arrow()
    return cells.cast(pa.string())


def some(column: Any, kept: NDArray[np.bool_]) -> Any:
    """Return the cells that are ``kept`` (n,), of any column of n rows."""
    if kept.all():
        return column
    if hasattr(column, "dtype"):
        return column[kept]
    return column.kept(kept) if isinstance(column, Compact) else [*compress(column, kept.tolist())]


def release_pages() -> None:
    """Let go of what of the temporary files is in memory; it is read again where it is needed."""
    for pages in _pages:
        pages.madvise(mmap.MADV_DONTNEED)


def _mapped(piece: pa.Array) -> pa.Array:
    """Return a copy of an array in a temporary file, which is gone with the array."""
    import pyarrow as pa

    with tempfile.TemporaryFile() as file:
        with pa.ipc.new_stream(file, pa.schema([("cells", piece.type)])) as writer:
            writer.write(pa.record_batch([piece], names=["cells"]))
        file.flush()
        _pages.add(pages := mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    return pa.ipc.open_stream(pa.py_buffer(pages)).read_next_batch().column(0)


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
