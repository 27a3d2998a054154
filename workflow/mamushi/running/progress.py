"""Progress with an estimate of the time left: a bar on a terminal, plain lines in a log file."""

from __future__ import annotations

import sys
import time
from types import TracebackType


class Progress:
    """Counts ``done`` of ``total`` units; prints a line every ``every`` seconds, and at the end.

    On a terminal it is a tqdm bar; elsewhere, as in a log, lines that ``tail -f`` can follow:
    ``contaminated: 120/560 steps, 21%, 0:00:12 gone, 0:00:45 left, loss 3.21``.
    """

    def __init__(self, total: int, what: str, unit: str, *, start: int = 0, every: float = 10.0):
        self.total, self.what, self.unit, self.every = total, what, unit, every
        self.done = self.start = start
        self.began = self.said = time.monotonic()
        self.bar = None
        if sys.stderr.isatty():
            from tqdm import tqdm

            self.bar = tqdm(total=total, initial=start, desc=what, unit=unit, smoothing=0.05)

    def __enter__(self) -> Progress:
        return self

    def advance(self, units: int = 1, note: str = "") -> None:
        """Count ``units`` more; ``note`` is what else to show now."""
        self.done += units
        if self.bar is not None:
            self.bar.set_postfix_str(note, refresh=False)
            self.bar.update(units)
            return
        now = time.monotonic()
        if now - self.said >= self.every or self.done >= self.total:
            self.said = now
            gone = now - self.began
            rate = (self.done - self.start) / gone if gone > 0 else 0.0
            left = (self.total - self.done) / rate if rate > 0 else float("inf")
            share = self.done / self.total if self.total else 1.0
            parts = [
                f"{self.what}: {self.done}/{self.total} {self.unit}s",
                f"{share:.0%}",
                f"{clock(gone)} gone",
                f"{clock(left)} left",
            ]
            print(", ".join([*parts, note] if note else parts), file=sys.stderr, flush=True)

    def due(self) -> bool:
        """Return whether the next ``advance`` will show its note, which is then computed."""
        if self.bar is not None:
            return True
        return time.monotonic() - self.said >= self.every or self.done + 1 >= self.total

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.bar is not None:
            self.bar.close()


def clock(seconds: float) -> str:
    """Return ``h:mm:ss``, or ``?`` for an unknown time."""
    if seconds == float("inf"):
        return "?"
    whole = int(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"
