"""Files that are whole or absent: write beside, flush, rename."""

import contextlib
import errno
import glob
import hashlib
import json
import os
import shutil
import socket
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mamushi.errors import UserError
from mamushi.io.tabular import URL

DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
IS_SECONDARY = int(os.environ.get("RANK", "0")) > 0
"""Whether this is a process beside the first of a job, which alone leaves what it writes."""
SEAL = "crc32"
"""The key of a JSON file that holds the checksum of all others."""


@contextlib.contextmanager
def atomic(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a path beside ``path`` to write to; rename it to ``path`` when the block succeeds. After
    a failure, or a kill at any moment, ``path`` is what it was. Raises as ``new_part``, before."""
    draft = new_part(Path(path))
    try:
        yield draft
        # Opened for writing, because some file systems refuse to flush a read-only descriptor.
        with draft.open("rb+") as handle:
            os.fsync(handle.fileno())
        if not IS_SECONDARY:
            draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def new_part(target: Path, make: Callable[[Path], None] = Path.touch) -> Path:
    """Make and return what is to become ``target``, a file or a folder beside it. Remove those that
    killed processes of this host left. Raises ``UserError`` for a URL, and ``OSError`` of the
    target where nothing can be written."""
    if URL.search(str(target)):
        do = "give a path here, and copy what is written there"
        raise UserError("is a URL, to which nothing is written", where=target, do=do)
    prefix = f".{target.name}.{socket.gethostname()}-"
    draft = target.with_name(f"{prefix}{os.getpid()}.part")
    try:
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        target.parent.mkdir(parents=True, exist_ok=True)
        for left in target.parent.glob(f"{glob.escape(prefix)}*.part"):
            pid = left.name.removeprefix(prefix).removesuffix(".part")
            if pid.isdigit() and not Path("/proc", pid).exists():
                shutil.rmtree(left, ignore_errors=True)
                left.unlink(missing_ok=True)
        make(draft)
    except OSError as error:
        error.filename, error.strerror = str(target), f"cannot be written ({error.strerror})"
        raise
    return draft


@contextlib.contextmanager
def reading(path: str | os.PathLike[str], do: str = "delete it and run again") -> Iterator[None]:
    """Raise ``UserError`` if the file is missing or damaged; ``do`` says what helps."""
    try:
        yield
    except FileNotFoundError:
        raise UserError("no such file", where=path, do="check the path") from None
    except Exception as error:
        if isinstance(error, UserError | MemoryError) or getattr(error, "errno", None):
            raise
        raise UserError(f"damaged ({error})", where=path, do=do) from None


def sha256(path: str | os.PathLike[str]) -> str:
    """Return hexadecimal SHA-256 of a file's bytes. Raises ``UserError`` when it is missing."""
    with reading(path), open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text as a whole or not at all."""
    with atomic(path) as draft:
        # Path names may have bytes that are no UTF-8: they become escapes, which JSON knows.
        draft.write_bytes(text.encode(errors="backslashreplace"))


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Write indented JSON with sorted keys, of an object with the checksum that ``read_json`` asks
    for, whole or not at all."""
    if isinstance(value, dict):
        value = {**value, SEAL: _checksum(value)}
    text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    write_text(path, f"{text}\n")


def read_json(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a JSON file of this program. Raises ``UserError`` when it is missing or has changed."""
    value = read_plain_json(path)
    with reading(path):
        if not isinstance(value, dict) or value.pop(SEAL, None) != _checksum(value):
            raise ValueError("or changed by hand, or of an earlier version: its checksum differs")
    return value


def read_plain_json(path: str | os.PathLike[str]) -> Any:
    """Read a JSON file of another program. Raises ``UserError`` when it is missing or damaged."""
    with reading(path, do="make it again"):
        return json.loads(Path(path).read_text(encoding="utf-8-sig"))


def header(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return metadata as safetensors stores it, in one key: of several the order would change."""
    return {"mamushi": json.dumps(metadata, sort_keys=True)}


def trained_metadata(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what trained tensors were made from. Raises ``UserError`` as ``reading``."""
    from safetensors import safe_open

    with reading(path), safe_open(path, "np") as file:
        return dict(json.loads((file.metadata() or {})["mamushi"]))


def _checksum(value: Any) -> str:
    # As it is read: the keys of a mapping are then text.
    content = json.loads(json.dumps(value))
    return f"{zlib.crc32(json.dumps(content, sort_keys=True).encode()):08x}"
