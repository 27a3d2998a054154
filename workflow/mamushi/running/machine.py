"""What a number was computed on, where its last bits may depend on that; and what it took."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import sys
import time
from pathlib import Path

from mamushi.errors import UserError

TINY = 5e7
"""Parameters up to which a model is as well off on a processor: those of tests and demos."""
VISIBLE = "CUDA_VISIBLE_DEVICES"
SCHEDULED = ("SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "SLURM_GPUS_ON_NODE")
"""Where SLURM tells a job of its GPUs."""


def conditions() -> dict[str, str | int]:
    """Return ``processor`` and ``device`` (``cpu``, or the name of the GPU) that this process
    computes on, and its ``threads`` for one operation: see ``threads``."""
    device, torch = "cpu", sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        device = torch.cuda.get_device_name()
    return {"processor": processor(), "device": device, "threads": 1}


def cores() -> int:
    """Return the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def processor() -> str:
    """Return the name of the processor's model."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine() or "unknown"


def sees_gpu() -> bool:
    """Tell whether this process has a GPU. torch, which remembers for good what it has seen, is not
    asked where none is to be seen."""
    import torch

    return os.environ.get(VISIBLE) != "" and torch.cuda.is_available()


def scheduled() -> str | None:
    """Return the GPUs that SLURM, or who started this process, says it holds; None for none."""
    names = [VISIBLE, *(SCHEDULED if "SLURM_JOB_ID" in os.environ else ())]
    values = (os.environ.get(name, "") for name in names)
    return next((value for value in values if value.strip() not in ("", "-1", "NoDevFiles")), None)


def require_cuda(held: str, card: str | os.PathLike[str] | None) -> None:
    """Raise ``UserError`` where this job holds GPUs that PyTorch cannot use, and its model is not
    ``TINY``. On a processor it would take days, while the GPU is paid for and idle. Where nobody
    gave the job a GPU there is nothing to be wasted, and a processor is what was meant."""
    import torch

    if card is None or torch.cuda.is_available():
        return
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
        if json.loads(Path(card).read_text("utf-8"))["parameters"] <= TINY:
            return
    built = torch.version.cuda or torch.version.hip or "CPUs alone"
    raise UserError(
        f"this job holds a GPU ({held}), but PyTorch {torch.__version__}, built for {built}, "
        "cannot use it",
        do="run `nvidia-smi` there, and install a PyTorch that suits its driver "
        "(pytorch.org/get-started); or set execution.device to cpu",
    )


def report(name: str, began: float) -> None:
    """Print what the command ``name`` took since ``began`` (``time.monotonic``): seconds, and those
    of a processor by this process and its ended children."""
    cost = f"took {time.monotonic() - began:.2f} s, {sum(os.times()[:4]):.2f} s of CPU"
    # A log has both, and this is its end.
    sys.stdout.flush()
    print(f"mamushi {name}: {cost}", file=sys.stderr, flush=True)
