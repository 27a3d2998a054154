"""Progress with an estimate of the time left: a bar where a person looks on, in a terminal or a
notebook, else lines that ``tail -f`` can follow."""

import sys
import time
from datetime import timedelta
from typing import Any, Self


class Progress:
    """Counts ``done`` of ``total`` units; prints a line every ``every`` seconds, and at the end:
    ``contaminated: 120/560 steps, 21%, 0:00:12 gone, 0:00:45 left, loss 3.21``."""

    def __init__(self, total: int, label: str, unit: str, *, start: int = 0, every: float = 10.0):
        self.total, self.label, self.unit, self.every = total, label, unit, every
        self.done = self.start = start
        self.began = self.printed = time.monotonic()
        self.bar: Any = None
        # A kernel's stream says so, too.
        if sys.stderr.isatty():
            from tqdm.auto import tqdm  # type: ignore[import-untyped]

            self.bar = tqdm(total=total, initial=start, desc=label, unit=f" {unit}s", leave=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        if self.bar is not None:
            self.bar.close()

    def will_show(self) -> bool:
        """Return whether the next ``advance`` will show its note, which is then computed."""
        return time.monotonic() - self.printed >= self.every or self.done + 1 >= self.total

    def advance(self, units: int = 1, note: str = "") -> None:
        """Count ``units`` more; ``note`` is what else to show now."""
        self.done += units
        if self.bar is not None:
            self.bar.set_postfix_str(note or self.bar.postfix or "", refresh=False)
            self.bar.update(units)
        elif time.monotonic() - self.printed >= self.every or self.done >= self.total:
            self.printed = time.monotonic()
            gone = int(self.printed - self.began)
            left = (self.total - self.done) * gone // max(self.done - self.start, 1)
            share = f"{self.done}/{self.total} {self.unit}s, {self.done / max(self.total, 1):.0%}"
            times = f"{timedelta(0, gone)} gone, {timedelta(0, left)} left"
            line = ", ".join(filter(None, [share, times, note]))
            print(f"{self.label}: {line}", file=sys.stderr, flush=True)
