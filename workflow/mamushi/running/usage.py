"""What a command took, as the kernel counts: the last line of its log, and reading that again."""

from __future__ import annotations

import re
import resource
import sys
import time
from pathlib import Path
from typing import NamedTuple

STATUS = Path("/proc/self/status")
LINE = re.compile(
    r"^mamushi [\w-]+: took (\d+\.\d+) s, (\d+\.\d+) s of CPU, (\d+) MB$", re.MULTILINE
)


class Usage(NamedTuple):
    """What one command took."""

    wall: float
    """Seconds."""
    cpu: float
    """Seconds of processors, of its process and those that it started."""
    memory_mb: float
    """Largest resident memory of any one of these processes."""


def processor_seconds(elsewhere: float = 0.0) -> float:
    """Return those of this process and its ended children; of these at least ``elsewhere``, which
    is what was computed for them, perhaps by processes that are no children of theirs."""
    own, children = (
        used.ru_utime + used.ru_stime
        for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )
    return own + max(children, elsewhere)


def report(name: str, began: float) -> None:
    """Print what the command ``name`` took since ``began`` (``time.monotonic``)."""
    used = Usage(time.monotonic() - began, processor_seconds(), _peak() / 1e6)
    # A log has both, and this is its end.
    sys.stdout.flush()
    print(spell(name, used), file=sys.stderr, flush=True)


def spell(name: str, used: Usage) -> str:
    """Return a line for ``parse``: ``mamushi retrain: took 6.41 s, 5.98 s of CPU, 412 MB``."""
    said = f"took {used.wall:.2f} s, {used.cpu:.2f} s of CPU, {used.memory_mb:.0f} MB"
    return f"mamushi {name}: {said}"


def parse(text: str) -> Usage | None:
    """Return the usage in a log, the last one there; None where it has none."""
    found = LINE.findall(text)
    return Usage(*map(float, found[-1])) if found else None


def _peak() -> float:
    """Return bytes of the largest process so far: this one, or a child that has ended."""
    unit = 1 if sys.platform == "darwin" else 1024
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    try:
        # What `getrusage` says of this process begins with the size of the one that started it,
        # which is Snakemake's: Linux keeps that over `exec`.
        mine = re.findall(r"^VmHWM:\s+(\d+) kB$", STATUS.read_text(encoding="ascii"), re.MULTILINE)
        return max(int(mine[0]), children) * unit
    except (OSError, LookupError):
        return max(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, children) * unit
