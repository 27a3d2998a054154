"""One opening of a file: its bytes, unpacked, and the digest of just these.

A file that is written meanwhile is refused, and one that is not what its name says is called what
it is, by its first bytes.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import hashlib
import io
import lzma
import os
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

from mamushi.errors import UserError
from mamushi.io import tabular

CHUNK = 1 << 20
NAME_SO = "name it so, with {} at the end"
KINDS: tuple[tuple[bytes, str, str], ...] = (
    (b"\x1f\x8b", "a gzip file", NAME_SO.format(".gz")),
    (b"\x28\xb5\x2f\xfd", "a Zstandard file", NAME_SO.format(".zst")),
    (b"PK\x03\x04", "a zip archive (or an Excel workbook)", NAME_SO.format(".zip")),
    (b"PAR1", "a Parquet file", NAME_SO.format(".parquet")),
    (b"ARROW1", "an Arrow file", NAME_SO.format(".arrow")),
    (b"\xff\xff\xff\xff", "an Arrow stream", NAME_SO.format(".arrow")),
    (b"\xff\xfe", "UTF-16 text", "save it as UTF-8"),
    (b"\xfe\xff", "UTF-16 text", "save it as UTF-8"),
    (b"version https://git-lfs", "a pointer of Git LFS", "fetch it: git lfs pull"),
)
"""First bytes -> what begins so, and what to do where something else was expected."""


def kind_of_file(head: bytes) -> tuple[str, str] | None:
    """Return what a file is that begins so, and what to do about it; None for what may be text."""
    return next((kind for magic, *kind in KINDS if head.startswith(magic)), None)  # type: ignore[return-value]


@contextlib.contextmanager
def open_unpacked(
    path: Path, digests: dict[str, str] | None = None, *, like: Path | None = None
) -> Iterator[IO[bytes]]:
    """Open a file for reading bytes, unpacked; of a zip archive, the one file in it. How it is
    packed is told by its ending, or by that of ``like``.

    With ``digests`` it is read to its end, and its SHA-256 noted there under its name: of the same
    bytes, whatever lies at the path by then. Raises ``UserError`` for a file that is damaged or
    another one than its name says, and that was written to meanwhile.
    """
    packing = tabular.packing_of(Path(tabular.written_name(like)) if like else path)
    try:
        with contextlib.ExitStack() as files:
            raw = files.enter_context(path.open("rb", buffering=0))
            before = os.fstat(raw.fileno())
            digest = None
            if digests is not None and packing != ".zip":
                digest = hashlib.sha256()
            stream = _Digested(raw, digest)
            source = io.BufferedReader(stream, CHUNK)
            handle = _unpacked(path, packing, source, files)
            if foreign := kind_of_file(handle.peek(512)):  # type: ignore[attr-defined]
                inside = f" (in {packing[1:]})" if packing else ""
                raise UserError(f"is {foreign[0]}{inside}", where=path, do=foreign[1])
            yield handle
            if digests is not None:
                # Whoever read may have closed what lies above it.
                while digest and stream.readinto(bytearray(CHUNK)):
                    pass
                digests[path.name] = digest.hexdigest() if digest else _digest(raw)
            check_unchanged(path, raw, before)
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError) as error:
        # That of a damaged stream has no number, or that of a place before its start.
        if not packing or (isinstance(error, OSError) and error.errno not in (None, errno.EINVAL)):
            raise  # The file system's.
        problem = f"truncated or damaged {packing[1:]} ({error})"
        raise UserError(problem, where=path, do="download or make it again") from None


@contextlib.contextmanager
def held(path: Path, digests: dict[str, str] | None = None) -> Iterator[IO[bytes]]:
    """Open a file to read any part of it. ``digests`` and errors as of ``open_unpacked``."""
    with path.open("rb") as handle:
        before = os.fstat(handle.fileno())
        yield handle
        if digests is not None:
            digests[path.name] = _digest(handle)
        check_unchanged(path, handle, before)


def check_unchanged(path: Path, handle: Any, before: os.stat_result) -> None:
    """Raise ``UserError`` where an open file was written to since its status was ``before``."""
    now = os.fstat(handle.fileno())
    if (now.st_size, now.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
        do = "run the same command again when nothing writes to it"
        raise UserError("has changed while it was read", where=path, do=do)


class _Digested(io.RawIOBase):
    """A file's bytes in their order, digested as they are read."""

    def __init__(self, raw: Any, digest: Any) -> None:
        self._raw, self._digest = raw, digest

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._digest is None

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if self._digest is not None:
            raise io.UnsupportedOperation("seek")
        return int(self._raw.seek(offset, whence))

    def readinto(self, buffer: Any) -> int:
        size = int(self._raw.readinto(buffer))
        if self._digest is not None:
            self._digest.update(memoryview(buffer)[:size])
        return size


def _unpacked(path: Path, packing: str, source: Any, files: Any) -> IO[bytes]:
    if packing == ".gz":
        return cast(IO[bytes], files.enter_context(gzip.GzipFile(fileobj=source)))
    if packing == ".zst":
        import pyarrow as pa

        stream = pa.CompressedInputStream(pa.PythonFile(source, mode="r"), "zstd")
        return io.BufferedReader(files.enter_context(stream))
    if packing != ".zip":
        return cast(IO[bytes], source)
    try:
        archive = files.enter_context(zipfile.ZipFile(source))
        inside = (m for m in archive.infolist() if "__MACOSX" not in m.filename)
        members = [member for member in inside if not member.is_dir()]
        if len(members) != 1:
            raise UserError(f"holds {len(members)} files", where=path, do="zip one file alone")
        return cast(IO[bytes], files.enter_context(archive.open(members[0])))
    except RuntimeError as error:
        # Encrypted, or by a method that is not known.
        problem = f"packed in a way that cannot be read here ({error})"
        raise UserError(problem, where=path, do="unpack it") from None


def _digest(handle: Any) -> str:
    """Return the SHA-256 of an open file, all of it."""
    handle.seek(0)
    return hashlib.file_digest(handle, "sha256").hexdigest()
