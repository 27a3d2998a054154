"""One job per GPU on a workstation.

Snakemake counts GPUs and does not hand them out: with four of them, four jobs would all compute on
the first. So a stage that computes on a GPU locks a file that stands for one, in a folder that all
runs of a user on a machine share, and sees that GPU alone. The lease ends with the process. Where
all GPUs are leased, the next job waits. All other stages see no GPU.

Within a SLURM job nothing of this happens: there, SLURM hands out the GPUs. ``MAMUSHI_GPU_LEASES``
is ``off``, or a folder for the leases.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from mamushi.errors import UserError
from mamushi.running.locks import POLL_SECONDS
from mamushi.running.machine import VISIBLE

SWITCH = "MAMUSHI_GPU_LEASES"


@contextlib.contextmanager
def leased(gpu: bool, count: int = 1) -> Iterator[str | None]:
    """Let this process see the ``count`` GPUs that it leases within the block, none if not ``gpu``.
    Gives the GPUs' names, joined by commas, None where nothing is leased. To come before CUDA is
    first asked for anything. Raises ``UserError`` where there are fewer GPUs than are asked
    for."""
    off = "SLURM_JOB_ID" in os.environ or os.environ.get(SWITCH) == "off"
    names = visible() if gpu and not off else []
    if off or (gpu and not names):
        yield None
        return
    if gpu and len(names) < count:
        raise UserError(
            f"the model is to be cut over {count} GPUs, and there are {len(names)} here",
            where="execution.gpus_per_job",
            do="run it on a machine that has them, or give it fewer",
        )
    before = os.environ.get(VISIBLE)
    with contextlib.ExitStack() as leases:
        shown = ",".join(_lease(names, count, leases)) if gpu else ""
        os.environ[VISIBLE] = shown
        try:
            yield shown or None
        finally:
            os.environ.pop(VISIBLE)
            if before is not None:
                os.environ[VISIBLE] = before


def visible() -> list[str]:
    """Return the GPUs that a process would see, by their names in CUDA_VISIBLE_DEVICES: numbers, or
    UUIDs of GPUs and their instances. Runs that share GPUs name them alike."""
    listed = os.environ.get(VISIBLE)
    if listed is not None:
        # As CUDA reads it: what comes after something that is no GPU does not count.
        is_gpu = re.compile(r"\d+|(GPU|MIG)-[\w/-]+").fullmatch
        return list(itertools.takewhile(is_gpu, map(str.strip, listed.split(","))))
    with contextlib.suppress(ImportError):
        import pynvml

        with contextlib.suppress(pynvml.NVMLError):  # no driver, no GPU
            pynvml.nvmlInit()
            return [str(number) for number in range(pynvml.nvmlDeviceGetCount())]
    return []


def _lease(names: list[str], count: int, leases: contextlib.ExitStack) -> list[str]:
    """Lease so many of these GPUs, all at once; wait while too many are leased. Returns their
    names. ``leases`` holds the locks."""
    # Not in $TMPDIR, which may differ between two runs that share the GPUs.
    folder = Path(os.environ.get(SWITCH) or f"/tmp/mamushi-gpus-{os.getuid()}")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for attempt in itertools.count():
        held = []
        with contextlib.ExitStack() as locks:
            for name in names:
                lock = FileLock(folder / re.sub(r"[^\w.-]", "_", name), timeout=0)
                with contextlib.suppress(Timeout):
                    locks.enter_context(lock)
                    held.append(name)
                if len(held) == count:
                    leases.push(locks.pop_all())
                    print(f"on GPU {','.join(held)}", file=sys.stderr, flush=True)
                    return held
        if attempt == 0:
            message = f"waiting for {count} of {len(names)} GPUs, which other jobs have leased"
            print(message, file=sys.stderr, flush=True)
        time.sleep(POLL_SECONDS)
    raise AssertionError
