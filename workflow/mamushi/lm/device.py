"""Devices, precision and reproducibility: the one door to `accelerate`."""

import ctypes
import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from accelerate.utils import InitProcessGroupKwargs

# The libraries live to the end; to look through them at each collection takes 0.25 s.
gc.freeze()
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Parameters of glibc: from how many bytes on memory is given back, and never kept."""


def accelerator(precision: str) -> Accelerator:
    """Make the accelerator of this process, on a GPU where there is one: ``precision`` is ``bf16``
    (autocast) or ``fp32``."""
    # Accelerate keeps one state a process, and refuses a second precision.
    AcceleratorState._reset_state()
    if (on_cpu := not torch.cuda.is_available()) and sys.platform == "linux":
        # Memory of one batch is that of the next: to fault it in anew takes 7% of a pass.
        for threshold in (M_TRIM_THRESHOLD, M_MMAP_THRESHOLD):
            ctypes.CDLL(None).mallopt(threshold, 2**30)
    return Accelerator(
        mixed_precision="bf16" if precision == "bf16" else "no",
        cpu=on_cpu,
        # The first process checks and writes what the others wait for: of 140 GB, on a slow disk.
        kwargs_handlers=[InitProcessGroupKwargs(timeout=timedelta(hours=2))],
    )


def seed_torch(seed: int) -> None:
    """Fix the seed of torch (all else draws by generators of its own), and ask for deterministic
    kernels: where there is none it warns; see ``deterministic`` for the steps of a training."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(True, warn_only=True)
    # They would also fill all fresh memory, which costs time and only hides bugs.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    torch.backends.cudnn.benchmark = False


@contextmanager
def deterministic(strict: bool) -> Iterator[None]:
    """Restore after the block what was asked for. Within it, if ``strict``, an operation without a
    deterministic kernel is an error: only so does flash attention take its deterministic one."""
    before = torch.get_deterministic_debug_mode()
    torch.set_deterministic_debug_mode("error" if strict else before)
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(before)
