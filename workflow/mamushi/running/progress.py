"""Progress with an estimate of the time left: one line that changes where a person looks on, in a
terminal or a notebook, else lines that ``tail -f`` can follow."""

from __future__ import annotations

import sys
import time
from datetime import timedelta


class Progress:
    """Counts ``done`` of ``total`` units; prints every some seconds, and at the end:
    ``contaminated: 120/560 steps, 21%, 0:00:12 gone, 0:00:45 left, loss 3.21``."""

    def __init__(self, total: int, label: str, unit: str, *, start: int = 0):
        self.total, self.label, self.unit = total, label, unit
        self.done = self.start = start
        self.began = self.printed = time.monotonic()
        # A kernel's stream says so, too.
        self.is_seen = sys.stderr.isatty()
        self.every = 0.5 if self.is_seen else 10.0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *raised: object) -> None:
        if self.is_seen:
            print(file=sys.stderr)

    def due(self) -> bool:
        """Return whether the next ``advance`` will show its note, which is then computed."""
        return time.monotonic() - self.printed >= self.every or self.done + 1 >= self.total

    def advance(self, units: int = 1, note: str = "") -> None:
        """Count ``units`` more; ``note`` is what else to show now."""
        self.done += units
        now = time.monotonic()
        if now - self.printed < self.every and self.done < self.total:
            return
        self.printed, gone = now, int(now - self.began)
        left = (self.total - self.done) * gone // max(self.done - self.start, 1)
        line = f"{self.label}: {self.done}/{self.total} {self.unit}s"
        line += f", {self.done / max(self.total, 1):.0%}"
        line += f", {timedelta(0, gone)} gone, {timedelta(0, left)} left"
        line += f", {note}" if note else ""
        # Back to the begin of the line, of which nothing stays.
        begin, end = ("\r\x1b[K", "") if self.is_seen else ("", "\n")
        print(f"{begin}{line}", end=end, file=sys.stderr, flush=True)
