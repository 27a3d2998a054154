"""What a number was computed on, where its last bits may depend on that."""

from __future__ import annotations

import contextlib
import os
import platform
import sys
from pathlib import Path


def conditions() -> dict[str, str | int]:
    """``processor`` and ``device`` (``cpu``, or the name of the GPU) that this process computes on,
    and its ``threads`` for one operation: see ``threads``."""
    device, torch = "cpu", sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        device = torch.cuda.get_device_name()
    return {"processor": processor(), "device": device, "threads": 1}


def cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def processor() -> str:
    """The name of the processor's model."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine() or "unknown"
