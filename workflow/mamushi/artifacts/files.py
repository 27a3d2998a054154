"""Files that are whole or absent: write beside, flush, rename. Digests of what was read."""

from __future__ import annotations

import contextlib
import errno
import glob
import hashlib
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mamushi.errors import UserError

DISK_FULL = {errno.ENOSPC, errno.EDQUOT}
REFUSED = {
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.EISDIR),
    *(errno.EEXIST, errno.ENAMETOOLONG, errno.EINVAL, errno.ELOOP),
}
"""Errors of a path that the same command would meet again."""


@contextlib.contextmanager
def atomic(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a path beside ``path`` to write to; rename it to ``path`` when the block succeeds.

    After a failure, or a kill at any moment, ``path`` is what it was before. Raises ``UserError``
    when the disk is full, and ``OSError`` before the block where nothing can be written.
    """
    target = Path(path)
    part = part_of(target)
    with writable(target):
        _sweep(target)
        part.touch()
    try:
        yield part
        # Opened for writing, because some file systems refuse to flush a read-only descriptor.
        with part.open("rb+") as handle:
            os.fsync(handle.fileno())
        part.replace(target)
    except OSError as error:
        if error.errno in DISK_FULL:
            raise UserError(
                "no space left while writing it; nothing was changed",
                where=target,
                do="free some space and run the same command again",
            ) from error
        raise
    finally:
        part.unlink(missing_ok=True)


@contextlib.contextmanager
def writable(target: Path) -> Iterator[None]:
    """Make the folder of a file that is to be written, and open its part within the block. What is
    refused is told of that file."""
    try:
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        target.parent.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        # Of the file that was asked for, not of a part of it or a folder above.
        error.filename, error.strerror = str(target), f"cannot be written ({error.strerror})"
        raise


def check_writable(target: Path) -> None:
    """Raise ``OSError`` where a file cannot be written, before work is done for it."""
    with writable(target):
        part = part_of(target)
        part.touch()
        part.unlink()


def part_of(target: Path) -> Path:
    """Return where this process writes what will be ``target``; its next writer removes what a
    killed process left there."""
    return target.with_name(f".{target.name}.{socket.gethostname()}-{os.getpid()}.part")


def _sweep(target: Path) -> None:
    """Remove parts of ``target`` that processes of this host left behind when they were killed."""
    prefix = f".{target.name}.{socket.gethostname()}-"
    for part in target.parent.glob(f"{glob.escape(prefix)}*.part"):
        pid = part.name[len(prefix) : -len(".part")]
        if pid.isdigit() and not _alive(int(pid)):
            part.unlink(missing_ok=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def sha256(path: str | os.PathLike[str]) -> str:
    """Return hexadecimal SHA-256 digest of a file's bytes.

    Raises ``UserError`` when it is missing or a folder.
    """
    with _reading(path), open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


@contextlib.contextmanager
def _reading(path: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise UserError("no such file", where=path, do="check the path") from None
    except IsADirectoryError:
        raise UserError("is a folder", where=path, do="give a file") from None


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Write ``value`` as indented JSON with sorted keys, whole or not at all."""
    with atomic(path) as part:
        part.write_text(
            json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n",
            encoding="utf-8",
        )


def read_json(path: str | os.PathLike[str]) -> Any:
    """Read a JSON file. Raises ``UserError`` when it is missing, a folder or damaged."""
    try:
        with _reading(path):
            return json.loads(Path(path).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"not valid JSON ({error})", where=path, do="make it again") from None
