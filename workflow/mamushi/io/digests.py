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
import zlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from mamushi.errors import COPY_RECEIPT, UserError
from mamushi.io.files import atomic, read_json, sha256

STORE = Path("results/digests/known.json")
MOST = 4096
"""Files whose digests are kept, those that were read last."""
SMALL = 1 << 16
"""Bytes up to which a file is read as quickly as it is looked up."""
SETTLED = 2.0
"""Seconds; a younger file can change again within one tick of its file system's clock."""


def of(path: str | os.PathLike[str]) -> str:
    """Return hexadecimal SHA-256 of a file's bytes.

    Raises ``UserError`` when it is missing or a folder.
    """
    key = _key(path)
    if key in _kept_digests():
        return _kept_digests()[key]
    began = time.time()
    digest = sha256(path)
    status = os.stat(path)
    settled = began - max(status.st_mtime, status.st_ctime) > SETTLED
    if status.st_size > SMALL and settled and _key(path) == key:
        _kept_digests()[key] = digest
        _keep(key, digest)
    return digest


def content_digests(paths: Iterable[str]) -> dict[str, str]:
    """Return the SHA-256 by name of files that come from outside, so that another one runs again
    what reads it, whatever its date; a dry run does without those that are not there yet."""
    digests: dict[str, str] = {}
    for path in filter(os.path.isfile, paths):
        if os.path.basename(path) == COPY_RECEIPT:
            digests |= _fetched(Path(path))
        else:
            digests[os.path.basename(path)] = of(path)
    return digests


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
        checksum, body = STORE.read_bytes().split(b"\n", 1)
        if int(checksum) == zlib.crc32(body):
            return dict(json.loads(body))
    return {}


def _keep(key: str, digest: str) -> None:
    """Add to the store, if this folder has results. Of two processes that write at the same moment
    one may undo the other's entry, which is then made again."""
    if not STORE.parents[1].is_dir():
        return
    newest = list({**_stored(), key: digest}.items())[-MOST:]
    body = json.dumps(dict(newest), indent=0).encode()
    with contextlib.suppress(OSError, UserError), atomic(STORE) as part:
        part.write_bytes(b"%d\n%b" % (zlib.crc32(body), body))
