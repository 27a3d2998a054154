"""What a command took, as the kernel counts: the last line of its log."""

from __future__ import annotations

import re
import resource
import sys
import time
from pathlib import Path

STATUS = Path("/proc/self/status")


def processor_seconds() -> float:
    """Return those of this process and its ended children."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def report(name: str, began: float) -> None:
    """Print what the command ``name`` took since ``began`` (``time.monotonic``), and the largest
    of its processes: ``mamushi retrain: took 6.41 s, 5.98 s of CPU, 412 MB``."""
    wall, cpu = time.monotonic() - began, processor_seconds()
    # A log has both, and this is its end.
    sys.stdout.flush()
    said = f"took {wall:.2f} s, {cpu:.2f} s of CPU, {_peak() / 1e6:.0f} MB"
    print(f"mamushi {name}: {said}", file=sys.stderr, flush=True)


def _peak() -> float:
    """Return bytes of the largest process so far: this one, or a child that has ended."""
    unit = 1 if sys.platform == "darwin" else 1024
    mine, children = (
        resource.getrusage(who).ru_maxrss
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    if STATUS.exists():
        # What `getrusage` says of this process begins with the size of the one that started it,
        # which is Snakemake's: Linux keeps that over `exec`.
        mine = int(re.findall(r"VmHWM:\s+(\d+) kB", STATUS.read_text(encoding="ascii"))[0])
    return max(mine, children) * unit
