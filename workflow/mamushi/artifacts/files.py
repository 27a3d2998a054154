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


@contextlib.contextmanager
def atomic(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a path beside ``path`` to write to; rename it to ``path`` when the block succeeds.

    After a failure, or a kill at any moment, ``path`` is what it was before. Raises ``UserError``
    when the disk is full.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    _sweep(target)
    part = part_of(target)
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
