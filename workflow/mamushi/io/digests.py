"""SHA-256 digests of texts, and of files, each read once for as long as it does not change.

As git does for its index, a file is known again by path, size, times, inode and device. Among them
is the time of a status change, which nobody sets back. Digests are kept in a file in ``results``,
for the next command.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from mamushi.errors import COPY_RECEIPT, UserError
from mamushi.io.files import atomic, read_json, sha256

STORE = Path("results/digests/known.json")
MOST = 65_536
"""Files whose digests are kept, those that were read last."""
KEPT_SECONDS = 5.0
"""Between two writings of the store while many files are read."""
MANY = 100
"""Files beyond which they have one digest together: the settings of a job are an argument of its
command, which Linux limits to 128 KiB."""
SMALL = 1 << 16
"""Bytes up to which a file is read as quickly as it is looked up."""
SETTLED = 2.0
"""Seconds; a younger file can change again within one tick of its file system's clock."""


def of(path: str | os.PathLike[str]) -> str:
    """Return hexadecimal SHA-256 of a file's bytes.

    Raises ``UserError`` when it is missing or a folder.
    """
    fresh: dict[str, str] = {}
    digest = _of(path, fresh)
    _keep(fresh)
    return digest


def _of(path: str | os.PathLike[str], fresh: dict[str, str]) -> str:
    """Return the digest of a file, and add it to what is ``fresh`` if the file was read for it."""
    key = _key(path)
    if key in _kept_digests():
        return _kept_digests()[key]
    began = time.time()
    digest = sha256(path)
    status = os.stat(path)
    settled = began - max(status.st_mtime, status.st_ctime) > SETTLED
    if status.st_size > SMALL and settled and _key(path) == key:
        _kept_digests()[key] = fresh[key] = digest
    return digest


def content_digests(paths: Iterable[str]) -> dict[str, str]:
    """Return the SHA-256 by name of files that come from outside, so that another one runs again
    what reads it, whatever its date; a dry run does without those that are not there yet. More than
    ``MANY`` have one together."""
    digests: dict[str, str] = {}
    fresh: dict[str, str] = {}
    written = time.monotonic()
    try:
        for path in filter(os.path.isfile, paths):
            if os.path.basename(path) == COPY_RECEIPT:
                digests |= _fetched(Path(path))
            else:
                name = os.path.basename(path)
                digests[path if name in digests else name] = _of(path, fresh)
            if time.monotonic() - written > KEPT_SECONDS:
                _keep(fresh)
                fresh, written = {}, time.monotonic()
    finally:
        _keep(fresh)
    return joint_digest(digests) if len(digests) > MANY else digests


def joint_digest(digests: Mapping[str, str]) -> dict[str, str]:
    """Return one digest for many files, by what they are called together: that of their names and
    digests, in the order of the names."""
    lines = "".join(f"{digests[name]} {name}\n" for name in sorted(digests))
    return {f"{len(digests)} files": hashlib.sha256(lines.encode()).hexdigest()}


def _fetched(receipt: Path) -> dict[str, str]:
    """Return the SHA-256 by name of the files of a copy. Raises ``UserError`` where one is not what
    was fetched."""
    files = read_json(receipt)["files"]
    for name, file in files.items():
        copy = receipt.parent / name
        if not copy.is_file() or of(copy) != file["sha256"]:
            do = "mamushi check fetches it again"
            raise UserError("has changed since it was fetched", where=copy, do=do)
    return {os.path.basename(name): file["sha256"] for name, file in files.items()}


def of_text(text: str) -> str:
    """Return the digest by which a text is known again: the first 16 hexadecimal digits of the
    SHA-256 of its UTF-8, without the white space around it, as it is ranked."""
    # Bytes that are no UTF-8, and lone surrogates, are texts that nobody ranked.
    return hashlib.sha256(text.strip().encode(errors="surrogatepass")).hexdigest()[:16]


def _key(path: str | os.PathLike[str]) -> str:
    """Return a file as it is now, in words; empty for one that cannot be looked at."""
    try:
        status = os.stat(path)
    except OSError:
        return ""
    times = (status.st_mtime_ns, status.st_ctime_ns)
    return json.dumps([os.path.abspath(path), status.st_size, *times, status.st_ino, status.st_dev])


@cache
def _kept_digests() -> dict[str, str]:
    """Return digests by key: those that the store held when it was first asked, and its own."""
    return _stored()


def _stored() -> dict[str, str]:
    """Return digests by key. A damaged store is none, and files are read again."""
    with contextlib.suppress(OSError, ValueError):
        return dict(json.loads(STORE.read_bytes()))
    return {}


def _keep(fresh: Mapping[str, str]) -> None:
    """Add to the store, if this folder has results. Of two processes that write at the same moment
    one may undo the other's entries, which are then made again."""
    if not fresh or not STORE.parents[1].is_dir():
        return
    newest = list({**_stored(), **fresh}.items())[-MOST:]
    with contextlib.suppress(OSError, UserError), atomic(STORE) as part:
        part.write_text(json.dumps(dict(newest), indent=0), encoding="utf-8")
