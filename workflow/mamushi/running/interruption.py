"""A training loop that is asked to end saves its state first.

SLURM sends SIGTERM when a job is preempted, cancelled or at its time limit, and SIGKILL after a
grace period. Outside a training loop signals end a process at once: whatever it has written is
whole. Within one, the first is only noted: the loop ends its step, saves, and raises ``Stopped``. A
second one ends the process at once, unless it comes with the first: a terminal, SLURM and the main
process of a run may all send one.
"""

import contextlib
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP)
SAME_REQUEST_SECONDS = 2.0
"""Within which a second signal is the same request."""


class Stopped(BaseException):
    """All is saved, and the process is to end with ``status``. No mistake of anyone: nothing that
    handles errors may take it for one."""

    def __init__(self, number: int, at: str = "") -> None:
        self.status = 128 + number
        name = signal.Signals(number).name
        super().__init__(f"stopped by {name}{at}; the same command goes on from there")


class Notice:
    """Whether the process was asked to end, and by which signal."""

    received: signal.Signals | None = None
    since = 0.0

    def note(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal: a later one does what it does by default."""
        if self.received is None:
            self.received, self.since = signal.Signals(number), time.monotonic()
        elif time.monotonic() - self.since > SAME_REQUEST_SECONDS:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)


@contextlib.contextmanager
def handle_signals(
    handler: Callable[[int, FrameType | None], object], numbers: Iterable[int] = SIGNALS
) -> Iterator[None]:
    """Let ``handler`` answer these signals within the block. Those that are ignored (as SIGHUP is
    under ``nohup``) stay so."""
    before = {}
    # In a thread, as in some notebooks, signals are none of its business.
    with contextlib.suppress(ValueError):
        for number in numbers:
            if signal.getsignal(number) != signal.SIG_IGN:
                before[number] = signal.signal(number, handler)
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)


def wait_for(process: subprocess.Popen[Any]) -> tuple[int, int | None]:
    """Wait for a process, which gets the signals of this one as SIGTERM. Return its exit status and
    the last signal, if one came."""
    received: list[int] = []

    def pass_on(number: int, _: object) -> None:
        received.append(number)
        process.terminate()

    with handle_signals(pass_on):
        status = process.wait()
    return status, received[-1] if received else None
