"""A checksum of a whole file within the file, so that no changed bit of it is read unnoticed.

Whoever writes a file puts ``SLOT`` into its metadata, and ``seal`` fills in the CRC-32 of all other
bytes. It is checked each time the file is opened, which costs a fifth of reading it.
"""

from __future__ import annotations

import mmap
import zlib
from pathlib import Path

from mamushi.errors import UserError

MARK, DIGITS = b"mamushi-crc32:", 8
SLOT = MARK.decode() + "0" * DIGITS
"""What stands in the metadata in place of the checksum until the file is complete."""
_PART = 2**26
"""Bytes that are in memory at once while all are read."""


def seal(path: str | Path) -> None:
    """Fill in the checksum of a file that has a slot."""
    with open(path, "rb+") as handle, mmap.mmap(handle.fileno(), 0) as data:
        place = _place(data)
        data[place : place + DIGITS] = _checksum(data, place)


def opened(path: str | Path) -> mmap.mmap:
    """Return a sealed file, mapped into memory, after checking all of it.

    Raises ``UserError`` when it is missing, a folder, damaged, or has no checksum.
    """
    try:
        with open(path, "rb") as handle:
            data = mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ)
        place = _place(data)
        if data[place : place + DIGITS] != _checksum(data, place):
            raise ValueError("its checksum is another")
    except FileNotFoundError:
        raise UserError("no such file", where=path, do="check the path") from None
    except (ValueError, OSError) as error:
        raise UserError(
            f"damaged, or written by an earlier version ({error})",
            where=path,
            do="delete it and run again",
        ) from None
    return data


def _place(data: mmap.mmap) -> int:
    """Return where the checksum stands: near the end of Parquet, else near the start."""
    place = (data.rfind if data[:4] == b"PAR1" else data.find)(MARK)
    if place < 0:
        raise ValueError("it has no checksum")
    return place + len(MARK)


def _checksum(data: mmap.mmap, place: int) -> bytes:
    """Return the checksum of all but the digits at ``place``. What was read of a mapped file counts
    as memory of the process until it is given back."""
    checksum, end = 0, place + DIGITS
    for start in range(0, len(data), _PART):
        stop = min(start + _PART, len(data))
        for low, high in ((start, min(stop, place)), (max(start, end), stop)):
            if low < high:
                with memoryview(data) as view, view[low:high] as part:
                    checksum = zlib.crc32(part, checksum)
        data.madvise(mmap.MADV_DONTNEED, start, stop - start)
    return b"%08x" % checksum
