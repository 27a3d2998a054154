"""One job per GPU on a workstation.

Snakemake counts GPUs and does not hand them out: with four of them, four jobs would all compute on
the first. So a stage that computes on a GPU (``GPU = True`` in its module) locks a file that stands
for one, in a folder that all runs of a user on a machine share, and sees that GPU alone. The lease
ends with the process, however that ends; where all GPUs are leased, the next job waits. All other
stages see no GPU, lest they compute on one that they do not have.

Within a SLURM job nothing of this happens: there, SLURM hands out the GPUs. ``MAMUSHI_GPU_LEASES``
is ``off``, or a folder for the leases.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from mamushi.errors import UserError
from mamushi.running import locks
from mamushi.running.machine import VISIBLE

SWITCH = "MAMUSHI_GPU_LEASES"


@contextlib.contextmanager
def leased(stage: str, gpu: bool, count: int = 1) -> Iterator[str | None]:
    """Let this process see the ``count`` GPUs that it leases within the block, none if not ``gpu``.
    Gives the GPUs' names, joined by commas, None where nothing is leased. To come before CUDA is
    first asked for anything. Raises ``UserError`` where the folder of the leases is not the user's
    own, and where there are fewer GPUs than are asked for."""
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
    held = _lease(stage, names, count) if gpu else {}
    before, shown = os.environ.get(VISIBLE), ",".join(held)
    os.environ[VISIBLE] = shown
    try:
        with contextlib.ExitStack() as locked:
            for lock in held.values():
                locked.enter_context(lock)
            if held:
                print(f"on GPU {shown}", file=sys.stderr, flush=True)
            yield shown or None
    finally:
        os.environ.pop(VISIBLE)
        if before is not None:
            os.environ[VISIBLE] = before


def visible() -> list[str]:
    """Return the GPUs that a process would see, by their names in CUDA_VISIBLE_DEVICES: numbers, or
    UUIDs of GPUs and their instances. Runs that share GPUs name them alike."""
    given = os.environ.get(VISIBLE)
    if given is None:
        with contextlib.suppress(ImportError):
            import pynvml

            with contextlib.suppress(pynvml.NVMLError):  # no driver, no GPU
                pynvml.nvmlInit()
                return [str(number) for number in range(pynvml.nvmlDeviceGetCount())]
        return []
    # As CUDA reads it: what comes after something that is no GPU does not count.
    known = r"\d+|(GPU|MIG)-[\w/-]+"
    names = (each.strip() for each in given.split(","))
    return list(itertools.takewhile(lambda name: re.fullmatch(known, name), names))


def _lease(stage: str, names: list[str], count: int) -> dict[str, locks.Lock]:
    """Lease so many of these GPUs, all at once; wait while too many are leased."""
    folder = _folder()
    files = {name: folder / re.sub(r"[^\w.-]", "_", name) for name in names}

    def attempt() -> dict[str, locks.Lock] | None:
        held: dict[str, locks.Lock] = {}
        for name, path in files.items():
            lock = locks.attempt(path, stage)
            if lock is not None:
                held[name] = lock
            if len(held) == count:
                return held
        for lock in held.values():
            lock.release()
        return None

    def message() -> str:
        holders = ", ".join(locks.describe(locks.holder(path)) for path in files.values())
        return f"waiting for one of {len(files)} GPUs, leased by {holders}"

    return locks.wait_for(attempt, message)


def _folder() -> Path:
    """Return the folder of the leases, which nobody else can write to. Not in $TMPDIR, which may
    differ between two runs that share the GPUs."""
    given = os.environ.get(SWITCH)
    folder = Path(given) if given else Path(f"/tmp/mamushi-gpus-{os.getuid()}")
    folder.mkdir(mode=0o700, parents=bool(given), exist_ok=True)
    there = folder.stat(follow_symlinks=False)
    others = there.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if not stat.S_ISDIR(there.st_mode) or there.st_uid != os.getuid() or others:
        raise UserError(
            "is no folder of yours that you alone can write to",
            where=folder,
            do=f"delete it, or set {SWITCH} to another folder",
        )
    return folder
