"""A forecast, and amounts in it, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def line(made: Mapping[str, Any]) -> str:
    """A forecast in one line, as it is printed when a run starts."""
    gpu = f"{clock(made['gpu_seconds'])} GPU, " if made["gpu_seconds"] else ""
    count = made["past_jobs"]
    source = f"from {count} past job{'s' * (count != 1)}" if count else "without any past job"
    return (
        f"Forecast for {made['jobs']} jobs: about {clock(made['wall_seconds'])} wall, {gpu}"
        f"{clock(made['cpu_seconds'])} CPU, {size(made['disk']['end'])} disk; {source}."
    )


def clock(seconds: float) -> str:
    """A time in the unit that suits it: ``-``, ``8.0 s``, ``12 min``, ``5.2 h``, ``1,530 h``."""
    if not seconds:
        return "-"
    unit, one = ("s", 1) if seconds < 99.5 else ("min", 60) if seconds < 5970 else ("h", 3600)
    return f"{seconds / one:,.{0 if seconds / one >= 9.95 else 1}f} {unit}"


def size(count: float) -> str:
    """Bytes in the unit that suits them: ``20 kB``, ``6.8 GB``, ``15.2 TB``."""
    for unit, one in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if count >= one:
            return f"{count / one:.1f} {unit}"
    return f"{count / 1e3:.0f} kB" if count else "-"
