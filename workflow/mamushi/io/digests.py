"""SHA-256 digests of texts, of results by what they are made from, and of files, each read once for
as long as it does not change: as git does for its index, a file is known again by path, size, times
(that of a status change is never set back), inode and device, from a folder of ``results``."""

import contextlib
import hashlib
import json
import os
import platform
import time
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mamushi import __version__
from mamushi.errors import UserError
from mamushi.io.files import reading, sha256, write_text

PACKAGES = (
    *("torch", "transformers", "accelerate", "tokenizers", "safetensors"),
    *("scikit-learn", "numpy", "pyarrow"),
)
STORE = Path("results/digests")
MANY = 100
"""Files beyond which they have one digest together: the settings of a job are an argument of its
command, which Linux limits to 128 KiB."""
SMALL = 1 << 16
"""Bytes up to which a file is read as quickly as it is looked up."""
SETTLED = 2.0
"""Seconds; a younger file can change again within one tick of its file system's clock."""


def of(path: str | os.PathLike[str]) -> str:
    """Return hexadecimal SHA-256 of a file's bytes. Raises ``UserError`` when it is missing."""
    (name, changed), began = _file_state(path), time.time()
    stored = STORE / name
    with contextlib.suppress(OSError):
        return stored.read_text(encoding="utf-8")
    digest = sha256(path)
    is_settled = began - changed > SETTLED and _file_state(path) == (name, changed)
    if is_settled and os.path.getsize(path) > SMALL and STORE.parent.is_dir():
        with contextlib.suppress(OSError, UserError):
            write_text(stored, digest)
    return digest


def _file_state(path: str | os.PathLike[str]) -> tuple[str, float]:
    """Return a name for a file as it is now, and the time of its last change."""
    with reading(path):
        status = os.stat(path)
    times = (status.st_mtime_ns, status.st_ctime_ns)
    state = [os.path.abspath(path), status.st_size, *times, status.st_ino, status.st_dev]
    return hashlib.sha256(json.dumps(state).encode()).hexdigest(), max(times) / 1e9


def content_digests(paths: Iterable[str]) -> dict[str, str]:
    """Return the SHA-256 by name of files that come from outside, so that another one runs again
    what reads it, whatever its date; a dry run does without those that are not there yet. More than
    ``MANY`` have one together."""
    digests = {os.path.basename(path): of(path) for path in filter(os.path.isfile, paths)}
    if len(digests) <= MANY:
        return digests
    lines = "".join(f"{digests[name]} {name}\n" for name in sorted(digests))
    return {f"{len(digests)} files": hashlib.sha256(lines.encode()).hexdigest()}


def text_sha(text: str) -> str:
    """Return the digest by which a text, without the white space around it, is known again: the
    first 16 hexadecimal digits of the SHA-256 of its UTF-8."""
    # Bytes that are no UTF-8, and lone surrogates, are texts that nobody ranked.
    return hashlib.sha256(text.strip().encode(errors="surrogatepass")).hexdigest()[:16]


@cache
def versions() -> dict[str, str]:
    """Return versions of Mamushi, Python and every package that can change a number."""
    packages = {package: version(package) for package in PACKAGES}
    return {"mamushi": __version__, "python": platform.python_version(), **packages}


def provenance(settings: Mapping[str, Any], **inputs: str | Path) -> dict[str, Any]:
    """Return the one identity of a result, ``{"settings", "inputs": {name: sha256}, "versions"}``,
    for its card or metadata. No times, so that the same inputs give the same bytes."""
    digests = {name: of(path) for name, path in sorted(inputs.items())}
    return {"settings": dict(settings), "inputs": digests, "versions": {**versions()}}


def fingerprint(origin: Mapping[str, Any]) -> str:
    """Return the identity as a name: SHA-256 of its canonical JSON."""
    return hashlib.sha256(json.dumps(origin, sort_keys=True).encode()).hexdigest()
