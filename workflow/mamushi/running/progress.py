"""Progress with an estimate of the time left: a bar where a person looks on, in a terminal or a
notebook, else lines that ``tail -f`` can follow."""

from __future__ import annotations

import sys
import time
from typing import Any

_entered: list[Progress] = []


class Progress:
    """Counts ``done`` of ``total`` units; prints a line every ``every`` seconds, and at the end:
    ``contaminated: 120/560 steps, 21%, 0:00:12 gone, 0:00:45 left, loss 3.21``.

    Within another one, of which it is one unit, share and times are those of the whole:
    ``refits 3/9, mamushi: 2/5 folds, 27%, 0:01:10 gone, 0:03:09 left``.
    """

    def __init__(self, total: int, label: str, unit: str, *, start: int = 0, every: float = 10.0):
        self.total, self.label, self.unit, self.every = total, label, unit, every
        self.done = self.start = start
        self.began = self.printed = time.monotonic()
        self.outer = _entered[-1] if _entered else None
        self.bar: Any = None
        # A kernel's stream says so, too.
        if sys.stderr.isatty():
            from tqdm.auto import tqdm  # type: ignore[import-untyped]

            self.bar = tqdm(total=total, initial=start, desc=label, unit=f" {unit}s", leave=False)

    def __enter__(self) -> Progress:
        _entered.append(self)
        return self

    def __exit__(self, *raised: object) -> None:
        _entered.remove(self)
        if self.bar is not None:
            self.bar.close()

    def due(self) -> bool:
        """Return whether the next ``advance`` will show its note, which is then computed."""
        return time.monotonic() - self.printed >= self.every or self.done + 1 >= self.total

    def advance(self, units: int = 1, note: str = "") -> None:
        """Count ``units`` more; ``note`` is what else to show now."""
        self.done += units
        if self.bar is not None:
            self.bar.set_postfix_str(note or self.bar.postfix or "", refresh=False)
            self.bar.update(units)
            return
        now = time.monotonic()
        if now - self.printed < self.every and self.done < self.total:
            return
        self.printed = now
        whole, label = self, self.label
        share, begun = (count / max(self.total, 1) for count in (self.done, self.start))
        while whole.outer:
            whole = whole.outer
            label = f"{whole.label} {min(whole.done + 1, whole.total)}/{whole.total}, {label}"
            share, begun = (whole.done + share) / whole.total, whole.start / whole.total
        gone = now - whole.began
        left = clock((1 - share) * gone / (share - begun)) if share > begun else "?"
        line = f"{label}: {self.done}/{self.total} {self.unit}s, {share:.0%}"
        line += f", {clock(gone)} gone, {left} left" + (f", {note}" if note else "")
        print(line, file=sys.stderr, flush=True)


def clock(seconds: float) -> str:
    """Return ``h:mm:ss``."""
    whole = int(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"
