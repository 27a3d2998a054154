"""One opening of a file: its bytes, unpacked, and the digest of just these.

A file that is written meanwhile is refused.
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
from typing import IO, Any

from mamushi.errors import UserError
from mamushi.io import tabular


@contextlib.contextmanager
def open_binary(path: Path, digests: dict[str, str] | None = None) -> Iterator[IO[bytes]]:
    """Open a file to read any part of it. With ``digests``, its SHA-256 is noted there under its
    name: of the file that was read, whatever lies at the path by then. Raises ``UserError`` for a
    file that was written to meanwhile."""
    with path.open("rb") as handle:
        before = os.fstat(handle.fileno())
        yield handle
        if digests is not None:
            handle.seek(0)
            name = str(path) if path.name in digests else path.name
            digests[name] = hashlib.file_digest(handle, "sha256").hexdigest()
        now = os.fstat(handle.fileno())
        if (now.st_size, now.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
            do = "run the same command again when nothing writes to it"
            raise UserError("has changed while it was read", where=path, do=do)


@contextlib.contextmanager
def open_unpacked(
    path: Path, digests: dict[str, str] | None = None, *, like: Path | None = None
) -> Iterator[IO[bytes]]:
    """Open a file for reading bytes, unpacked; of a zip archive, the one file in it. How it is
    packed is told by its ending, or by that of ``like``.

    ``digests`` and errors as of ``open_binary``; raises ``UserError`` also for a file that is
    damaged.
    """
    packing = tabular.packing_of(Path(tabular.written_name(like)) if like else path)
    try:
        with open_binary(path, digests) as file, contextlib.ExitStack() as files:
            # Whoever reads may close it, and the file stays open for its digest.
            source = files.enter_context(open(file.fileno(), "rb", closefd=False))
            yield _unpacked(path, packing, source, files)
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError) as error:
        # That of a damaged stream has no number, or that of a place before its start.
        if packing and getattr(error, "errno", None) in (None, errno.EINVAL):
            problem = f"truncated or damaged {packing[1:]} ({error})"
            raise UserError(problem, where=path, do="download or make it again") from None
        raise


def _unpacked(path: Path, packing: str, source: Any, files: contextlib.ExitStack) -> Any:
    if packing == ".gz":
        return files.enter_context(gzip.GzipFile(fileobj=source))
    if packing == ".zst":
        import pyarrow as pa

        stream = pa.CompressedInputStream(pa.PythonFile(source, mode="r"), "zstd")
        return io.BufferedReader(files.enter_context(stream))
    if packing != ".zip":
        return source
    archive = files.enter_context(zipfile.ZipFile(source))
    members = [m for m in archive.infolist() if not (m.is_dir() or "__MACOSX" in m.filename)]
    if len(members) != 1:
        raise UserError(f"holds {len(members)} files", where=path, do="zip one file alone")
    return files.enter_context(archive.open(members[0]))
