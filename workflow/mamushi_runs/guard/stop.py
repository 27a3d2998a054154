"""A run that is asked to end, by Ctrl-C or SIGTERM: its jobs are asked as well, and one line says
so at once. Snakemake alone waits for them without a word, and answers a second Ctrl-C with a page.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from pathlib import Path
from typing import Any

AGAIN = 2.0
"""Seconds within which a second signal is the same request: a terminal sends one to all processes
of a run, and the process that started Snakemake passes its own on."""
STARTED = "MAMUSHI_STARTED"
"""Set in a Snakemake that `mamushi` started: it ignores Ctrl-C, on which that process ends it,
until it can answer it itself."""
SAID = (
    b"\nmamushi: stopping; jobs that run are asked to end, and the same command goes on with what "
    b"is there. Once more ends it without waiting for them.\n"
)
_asked: list[float] = []


def asked() -> bool:
    """Return whether this run was asked to end."""
    return bool(_asked)


def listen(mark: Path) -> None:
    """From now on, answer Ctrl-C and SIGTERM in this process, and make the file ``mark`` then."""
    _asked.clear()
    started = os.environ.pop(STARTED, None)
    ignored = signal.getsignal(signal.SIGINT) == signal.SIG_IGN and not started
    for number in (signal.SIGTERM, *([] if ignored else [signal.SIGINT])):
        signal.signal(number, lambda number, _: _stop(number, mark))


def _stop(number: int, mark: Path) -> None:
    """Raise ``KeyboardInterrupt``, on which Snakemake cancels its jobs; end at once if it was asked
    before."""
    now = time.monotonic()
    if _asked:
        if now - _asked[0] > AGAIN:
            os._exit(128 + number)
        return
    _asked.append(now)
    with contextlib.suppress(OSError):
        mark.touch()
    with contextlib.suppress(OSError):
        # Not by print, in whose middle the signal may have come.
        os.write(2, SAID)
    end_jobs()
    raise KeyboardInterrupt


def end_jobs() -> None:
    """Send SIGTERM to the processes that this one has started, and theirs; not to those with a
    session of their own, which hear of it from the others (see ``running.warm`` and ``launch``)."""
    import psutil  # type: ignore[import-untyped]

    session = os.getsid(0)
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(OSError, psutil.Error):
            status = Path(f"/proc/{child.pid}/status")
            if os.getsid(child.pid) == session and not _is_ending(status.read_text("utf-8")):
                child.terminate()


def _is_ending(status: str) -> bool:
    """Return whether a process was asked to end already, by what the kernel says of it: Python
    answers SIGINT, or was told to ignore it, until a training loop has taken note of a signal (see
    ``running.interruption``). A second one would end that loop before its state is saved."""
    bit, masks = 1 << (signal.SIGINT - 1), re.findall(r"^Sig(?:Cgt|Ign):\s*(\w+)$", status, re.M)
    python = re.match(r"Name:\s*(?:python|mamushi)", status)
    return bool(python) and not any(int(mask, 16) & bit for mask in masks)


def with_parent() -> Any:
    """Return what a child is to call before it becomes Snakemake: it gets SIGTERM when the process
    that started it ends without it, as by `kill -9`, and Ctrl-C is left to that process. None where
    the system has no such thing."""
    import ctypes
    import sys

    if not sys.platform.startswith("linux"):
        return None
    system, parent = ctypes.CDLL(None), os.getpid()
    death = 1  # PR_SET_PDEATHSIG

    def prepare() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        system.prctl(death, int(signal.SIGTERM), 0, 0, 0)
        if os.getppid() != parent:
            os._exit(128 + signal.SIGTERM)

    return prepare
