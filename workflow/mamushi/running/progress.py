"""Progress with an estimate of the time left, in lines that ``tail -f`` can follow."""

from __future__ import annotations

import sys
import time


class Progress:
    """Counts ``done`` of ``total`` units; prints a line every ``every`` seconds, and at the end:
    ``contaminated: 120/560 steps, 21%, 0:00:12 gone, 0:00:45 left, loss 3.21``."""

    def __init__(self, total: int, what: str, unit: str, *, start: int = 0, every: float = 10.0):
        self.total, self.what, self.unit, self.every = total, what, unit, every
        self.done = self.start = start
        self.began = self.said = time.monotonic()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *raised: object) -> None:
        pass

    def due(self) -> bool:
        """Return whether the next ``advance`` will show its note, which is then computed."""
        return time.monotonic() - self.said >= self.every or self.done + 1 >= self.total

    def advance(self, units: int = 1, note: str = "") -> None:
        """Count ``units`` more; ``note`` is what else to show now."""
        self.done += units
        now = time.monotonic()
        if now - self.said < self.every and self.done < self.total:
            return
        self.said, gone = now, now - self.began
        counted = self.done - self.start
        left = clock((self.total - self.done) * gone / counted) if counted else "?"
        share = self.done / self.total if self.total else 1.0
        said = f"{self.what}: {self.done}/{self.total} {self.unit}s, {share:.0%}"
        said += f", {clock(gone)} gone, {left} left" + (f", {note}" if note else "")
        print(said, file=sys.stderr, flush=True)


def clock(seconds: float) -> str:
    """Return ``h:mm:ss``."""
    whole = int(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"
