"""One writer per output, and nothing is computed twice.

When Snakemake is killed, its jobs live on, on a cluster for hours. Started again, it submits the
same commands once more. So a command first locks a file that stands for its primary output, and
waits while another process holds it. When it has the lock, it looks at what stands there: outputs
that were made from just what it would make them from are whole and current, and are kept; anything
else is computed, from the checkpoint that a killed command left.

Without locks (some network file systems have none) nobody waits, and all else is the same. So it is
for outputs that lie elsewhere than in results, as in a command by hand.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mamushi.artifacts import paths
from mamushi.artifacts.provenance import recorded
from mamushi.errors import UserError
from mamushi.running import locks


@contextlib.contextmanager
def claimed(stage: str, outputs: Sequence[Path]) -> Iterator[None]:
    """Let no other process write these outputs, of which the first is primary, within the block.

    Of several processes that `accelerate launch` starts, the first claims for all, and does not
    wait, because the others would in vain: raises ``UserError`` if another command is at work.
    """
    primary = Path(os.path.relpath(outputs[0]))
    results = os.path.abspath(Path(paths.CLAIMS).parent)
    inside = Path(os.path.abspath(primary)).is_relative_to(results)
    if not inside or int(os.environ.get("RANK", "0")) > 0:
        yield
        return
    several = int(os.environ.get("WORLD_SIZE", "1")) > 1
    # Several stages write to one folder of tables, each its own.
    reason = f"which writes the same {primary}"
    with exclusive(f"{stage} {primary}", stage, reason, wait=not several):
        yield


def finished(outputs: Sequence[Path], origin: Mapping[str, Any]) -> bool:
    """Return whether all outputs stand there, made from ``origin`` by their own record."""
    try:
        return all(recorded(path) == origin for path in outputs)
    except (UserError, OSError, ValueError):
        return False


@contextlib.contextmanager
def exclusive(
    name: str,
    stage: str,
    reason: str,
    folder: str | os.PathLike[str] = paths.CLAIMS,
    *,
    wait: bool = True,
) -> Iterator[None]:
    """Let no other process into the block of this ``name``; wait for its turn.

    ``reason`` ends the sentence that is said while waiting: see ``locks.acquire``. Without ``wait``
    raises ``UserError`` instead. Where the file system has no locks, all go in.
    """
    path = Path(folder) / hashlib.sha256(name.encode()).hexdigest()[:16]
    lock: locks.Lock | None = None
    try:
        while lock is None:
            path.parent.mkdir(parents=True, exist_ok=True)
            # The folder may be deleted under our feet, after a run that succeeded.
            with contextlib.suppress(FileNotFoundError):
                lock = locks.acquire(path, stage, reason) if wait else locks.attempt(path, stage)
                if lock is None:
                    who = locks.describe(locks.holder(path))
                    raise UserError(f"another command is at work ({who}), {reason}")
    except OSError as error:
        if error.errno not in locks.UNSUPPORTED:
            raise
        print(f"no locks in {folder} ({error.strerror}): going without", file=sys.stderr)
    with lock or contextlib.nullcontext():
        try:
            yield
        finally:
            if lock:
                path.unlink(missing_ok=True)
