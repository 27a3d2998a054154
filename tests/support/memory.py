"""The most memory that a call needs, as the kernel counts it."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from pathlib import Path

RECORD = Path("/proc/self/clear_refs")
"""Linux sets the record of the peak back for a "5" there."""


def peak_mib(call: Callable[[], object]) -> float:
    """The peak in MiB beyond what was in use before."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    RECORD.write_text("5", encoding="ascii")
    before = _kib("VmRSS")
    call()
    return max(0.0, _kib("VmHWM") - before) / 1024


def _kib(key: str) -> float:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    (found,) = (line for line in lines if line.startswith(f"{key}:"))
    return float(found.split()[1])
