"""Exclusive locks between processes: a file that one of them holds, and that says who; and one
writer per output.

The kernel takes a ``flock`` back when its holder ends, however that ends, so that none is ever
stale. When Snakemake is killed, its jobs live on, and started again, it submits the same commands
once more. So a command first locks a file that stands for its primary output, and waits while
another process holds it. Then outputs that were made from just what it would make them from are
kept; anything else is computed, from the checkpoint that a killed command left.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from mamushi.errors import UserError
from mamushi.io import paths
from mamushi.io.provenance import recorded

UNSUPPORTED = {errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.EINVAL}
"""Errors of a file system that has no such locks."""

POLL = 0.5  # seconds between two looks at a lock that another process holds
SAY = 60.0  # seconds between two messages while waiting

Taken = TypeVar("Taken")
_held: set[Lock] = set()


class Lock:
    """A lock that this process holds, until ``release`` or its end. A child does not hold it:
    a forked copy of this process closes its descriptor."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path, self.descriptor = path, descriptor
        _held.add(self)

    def __enter__(self) -> Lock:
        return self

    def __exit__(self, *raised: object) -> None:
        self.release()

    def release(self) -> None:
        """Let the next one in. The file stays; who deletes it does so while holding the lock."""
        _held.discard(self)
        with contextlib.suppress(OSError):
            os.close(self.descriptor)
        self.descriptor = -1

    def sign_off(self) -> None:
        """Release it, and leave no name in the file: what a killed holder leaves is one."""
        with contextlib.suppress(OSError):
            os.ftruncate(self.descriptor, 0)
        self.release()


def attempt(path: Path, stage: str) -> Lock | None:
    """Take the lock of this file, which is made where it is missing; None if another holds it.
    ``stage`` is what the holder does; it stands in the file with host, process and time. Raises
    ``OSError`` where the file cannot be opened, or (with an error of ``UNSUPPORTED``) where its
    file system has no locks."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    while True:
        with contextlib.ExitStack() as opened:
            descriptor = os.open(path, flags, 0o666)
            opened.callback(os.close, descriptor)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                mine, there = os.fstat(descriptor), os.stat(path, follow_symlinks=False)
            except BlockingIOError:
                return None
            except FileNotFoundError:
                continue
            # Between opening and locking, the file may have been deleted, and another one made in
            # its place: a lock on the old one keeps nobody out.
            if (mine.st_dev, mine.st_ino) == (there.st_dev, there.st_ino):
                opened.pop_all()
                _sign(descriptor, stage)
                return Lock(path, descriptor)


def adopt(path: Path, descriptor: int, stage: str) -> Lock:
    """Return a lock that this process has from the one that started it, and sign it."""
    _sign(descriptor, stage)
    return Lock(path, descriptor)


def acquire(path: Path, stage: str, reason: str) -> Lock:
    """Take the lock of this file, and wait for it as long as another process holds it. While
    waiting, a line each minute on stderr says for whom, and ``reason``: ``waiting for node3 pid
    4711 (SLURM job 88), which writes the same results/...``. Raises as ``attempt`` does."""
    return wait_for(
        lambda: attempt(path, stage), lambda: f"waiting for {describe(holder(path))}, {reason}"
    )


def wait_for(attempt: Callable[[], Taken | None], message: Callable[[], str]) -> Taken:
    """Attempt until it gives something, with the message on stderr each minute."""
    said = -SAY
    while (found := attempt()) is None:
        if time.monotonic() - said >= SAY:
            said = time.monotonic()
            print(message(), file=sys.stderr, flush=True)
        time.sleep(POLL)
    return found


def holder(path: Path) -> dict[str, Any]:
    """Return who holds the lock of this file, or held it last; empty if it does not say."""
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return {}


def describe(about: Mapping[str, Any]) -> str:
    """Return a holder in words: ``node3 pid 4711 (SLURM job 88)``."""
    if not about:
        return "another process"
    job = f" (SLURM job {about['job']})" if about.get("job") else ""
    return f"{about.get('host')} pid {about.get('pid')}{job}"


def _sign(descriptor: int, stage: str) -> None:
    holder = {
        **{"host": socket.gethostname(), "pid": os.getpid(), "stage": stage},
        **{"job": os.environ.get("SLURM_JOB_ID"), "since": time.strftime("%Y-%m-%dT%H:%M:%S%z")},
    }
    # By the descriptor that is held: on NFS, closing any other one of the file would let go of it.
    # On a full disk, the lock is as good without it.
    with contextlib.suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, (json.dumps(holder) + "\n").encode(), 0)


def _release_all() -> None:
    for lock in list(_held):
        lock.release()


os.register_at_fork(after_in_child=_release_all)


# One writer per output --------------------------------------------------------------------------


@contextlib.contextmanager
def claimed(stage: str, outputs: Sequence[Path]) -> Iterator[None]:
    """Let no other process write these outputs, of which the first is primary, within the block."""
    primary = Path(os.path.relpath(outputs[0]))
    results = os.path.abspath(Path(paths.CLAIMS).parent)
    if not Path(os.path.abspath(primary)).is_relative_to(results):
        yield
        return
    # Several stages write to one folder of tables, each its own.
    reason = f"which writes the same {primary}"
    with exclusive(f"{stage} {primary}", stage, reason):
        yield


def finished(outputs: Sequence[Path], origin: Mapping[str, Any]) -> bool:
    """Return whether all outputs stand there, made from ``origin`` by their own record."""
    try:
        return all(recorded(path) == origin for path in outputs)
    except (UserError, OSError, ValueError):
        return False


@contextlib.contextmanager
def exclusive(
    name: str, stage: str, reason: str, folder: str | os.PathLike[str] = paths.CLAIMS
) -> Iterator[None]:
    """Let no other process into the block of this ``name``; wait for its turn. ``reason`` ends the
    sentence that is said while waiting: see ``acquire``. Where the file system has no locks, all go
    in."""
    path = Path(folder) / hashlib.sha256(name.encode()).hexdigest()[:16]
    lock: Lock | None = None
    try:
        while lock is None:
            path.parent.mkdir(parents=True, exist_ok=True)
            # The folder may be deleted under our feet, after a run that succeeded.
            with contextlib.suppress(FileNotFoundError):
                lock = acquire(path, stage, reason)
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
        print(f"no locks in {folder} ({error.strerror}): going without", file=sys.stderr)
    with lock or contextlib.nullcontext():
        try:
            yield
        finally:
            if lock:
                path.unlink(missing_ok=True)
