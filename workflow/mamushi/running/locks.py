"""One writer at a time: a lock file of ``filelock`` beside what two processes could both write.

The kernel takes such a lock back when its holder ends, however that ends. When Snakemake is killed,
its jobs live on, and started again it starts the same commands once more: a command waits here
until the earlier one has ended, and then computes, from the state that a killed one left.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from filelock import FileLock, Timeout

from mamushi.io import paths

POLL_SECONDS = 0.5
UNSUPPORTED = {errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.EINVAL}
"""Errors of file systems without locks, beside ENOSYS, which filelock turns into its own."""


@contextlib.contextmanager
def exclusive(lock: Path, activity: str, busy: Exception | None = None) -> Iterator[None]:
    """Let one process at a time into the block, of those that name this lock file. Who has to wait
    prints ``waiting for another process, which`` and ``activity``, or raises ``busy``. Where the
    file system has no locks, all go in, and a line says so."""
    with contextlib.ExitStack() as stack:
        try:
            lock.parent.mkdir(parents=True, exist_ok=True)
            held = FileLock(lock, fallback_to_soft=False)
            try:
                stack.enter_context(held.acquire(timeout=0))
            except Timeout:
                if busy is not None:
                    raise busy from None
                print(f"waiting for another process, which {activity}", file=sys.stderr, flush=True)
                stack.enter_context(held.acquire(poll_interval=POLL_SECONDS))
        except (NotImplementedError, OSError) as error:
            if isinstance(error, OSError) and error.errno not in UNSUPPORTED:
                raise
            print(f"{lock.parent}: no locks here ({error}): going without", file=sys.stderr)
        yield


@contextlib.contextmanager
def claimed(outputs: Sequence[Path]) -> Iterator[None]:
    """Let no other process write these outputs within the block, if they are results: what a user
    writes elsewhere is the user's own business."""
    claims = Path(paths.CLAIMS)
    primary = os.path.relpath(outputs[0])
    if not Path(primary).absolute().is_relative_to(claims.parent.absolute()):
        yield
        return
    name = hashlib.sha256(primary.encode()).hexdigest()[:16]
    with exclusive(claims / name, f"writes the same {primary}"):
        yield
