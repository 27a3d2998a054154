"""One writer at a time: a lock file of ``filelock`` beside what two processes could both write.

The kernel takes such a lock back when its holder ends, however that ends. When Snakemake is killed,
its jobs live on, and started again it starts the same commands once more: a command waits here
until the earlier one has ended, and then computes, from the state that a killed one left.

Snakemake counts GPUs and does not hand them out: with four, four jobs would all compute on the
first. So a stage that computes on a GPU locks a file that stands for one, in a folder that all runs
of a user on a machine share, and sees that GPU alone; all other stages see none. Within a SLURM job
SLURM hands out the GPUs.
"""

import contextlib
import errno
import hashlib
import itertools
import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from filelock import FileLock, Timeout

from mamushi.errors import UserError
from mamushi.io import paths
from mamushi.running.machine import VISIBLE, set_variables

POLL_SECONDS = 0.5
SWITCH = "MAMUSHI_GPU_LEASES"
"""The variable that is ``off``, or a folder for leases of GPUs."""
UNSUPPORTED = {errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.EINVAL}
"""Errors of file systems without locks."""


@contextlib.contextmanager
def exclusive(lock: Path, activity: str, busy: Exception | None = None) -> Iterator[None]:
    """Let one process at a time into the block, of those that name this lock file. Who has to wait
    prints ``waiting for another process, which`` and ``activity``, or raises ``busy``. Where the
    file system has no locks, all go in, and a line says so."""
    file = FileLock(lock, fallback_to_soft=False)
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        try:
            file.acquire(timeout=0)
        except Timeout:
            if busy is not None:
                raise busy from None
            print(f"waiting for another process, which {activity}", file=sys.stderr, flush=True)
            file.acquire(poll_interval=POLL_SECONDS)
    except (OSError, NotImplementedError) as error:
        # Without the right to lock, or room for it, nobody goes in.
        if isinstance(error, OSError) and error.errno not in UNSUPPORTED:
            raise
        print(f"{lock.parent}: no locks here ({error}): going without", file=sys.stderr)
    try:
        yield
    finally:
        file.release()


def claim_outputs(outputs: Sequence[Path]) -> contextlib.AbstractContextManager[None]:
    """Let no other process write these outputs within the block, if they are results: what a user
    writes elsewhere is the user's own business."""
    claims, primary = Path(paths.CLAIMS), os.path.relpath(outputs[0])
    if not Path(primary).absolute().is_relative_to(claims.parent.absolute()):
        return contextlib.nullcontext()
    name = hashlib.sha256(primary.encode()).hexdigest()[:16]
    return exclusive(claims / name, f"writes the same {primary}")


@contextlib.contextmanager
def lease_gpus(gpu: bool, count: int = 1) -> Iterator[None]:
    """Let this process see the ``count`` GPUs that it leases within the block, none if not ``gpu``.
    To come before CUDA is first asked for anything. Raises ``UserError`` where there are fewer GPUs
    than are asked for."""
    names, shown = visible_gpus() if gpu else [], ""
    if gpu and (not names or "SLURM_JOB_ID" in os.environ or os.environ.get(SWITCH) == "off"):
        yield
        return
    with contextlib.ExitStack() as stack:
        if gpu:
            shown = ",".join(_lease(names, count, stack))
        stack.enter_context(set_variables(**{VISIBLE: shown}))
        yield


def visible_gpus() -> list[str]:
    """Return the GPUs that a process would see, by their names in CUDA_VISIBLE_DEVICES: numbers, or
    UUIDs of GPUs and their instances. Runs that share GPUs name them alike."""
    listed = os.environ.get(VISIBLE)
    if listed is not None:
        # As CUDA reads it: what comes after something that is no GPU does not count.
        is_gpu = re.compile(r"\d+|(GPU|MIG)-[\w/-]+").fullmatch
        return list(itertools.takewhile(is_gpu, map(str.strip, listed.split(","))))
    import pynvml

    with contextlib.suppress(pynvml.NVMLError):  # no driver, no GPU
        pynvml.nvmlInit()
        return [str(number) for number in range(pynvml.nvmlDeviceGetCount())]
    return []


def _lease(names: list[str], count: int, stack: contextlib.ExitStack) -> list[str]:
    """Return so many of these GPUs, whose locks ``stack`` holds, all at once; wait while too many
    are leased."""
    if len(names) < count:
        problem = f"the model is to be cut over {count} GPUs, and there are {len(names)} here"
        do = "run it on a machine that has them, or give it fewer"
        raise UserError(problem, where="execution.gpus_per_job", do=do)
    # Not in $TMPDIR, which may differ between two runs that share the GPUs.
    folder = Path(os.environ.get(SWITCH) or f"/tmp/mamushi-gpus-{os.getuid()}")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    words = f"waiting for {count} of {len(names)} GPUs, which other jobs have leased\n"
    while True:
        free: list[str] = []
        with contextlib.ExitStack() as locks:
            for name in names:
                lock = FileLock(folder / re.sub(r"[^\w.-]", "_", name), timeout=0)
                with contextlib.suppress(Timeout):
                    locks.enter_context(lock)
                    free.append(name)
                if len(free) == count:
                    stack.push(locks.pop_all())
                    print(f"on GPU {','.join(free)}", file=sys.stderr, flush=True)
                    return free
        print(words, end="", file=sys.stderr, flush=True)
        words = ""
        time.sleep(POLL_SECONDS)
