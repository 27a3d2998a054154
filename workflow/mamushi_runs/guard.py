"""One run per folder, an end within seconds, and what a killed run left in SLURM.

Snakemake alone waits for its jobs on SIGTERM (snakemake #448), and may submit once more what an
earlier run left in SLURM's queue (snakemake-executor-plugin-slurm #109).
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from mamushi.errors import UserError
from mamushi.running.interruption import SAME_REQUEST_SECONDS

LOCK = Path(".snakemake") / "mamushi-run.lock"
"""In the working folder: locked by its main process, whose host and number it holds."""
STOPPING = (
    b"\nmamushi: stopping; jobs that run are asked to end, and the same command goes on with what "
    b"is there. Once more ends it without waiting for them.\n"
)
RUN_NAME = re.compile(r"(?:[\w-]{1,50}_)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""Snakemake names its jobs by the run: a UUID, perhaps after a prefix of the user's."""

_locks: list[FileLock] = []
_signals: list[float] = []
"""When the first one came."""


def stopping() -> bool:
    """Return whether this run got a signal to end."""
    return bool(_signals)


def lock_folder(folder: Path) -> FileLock:
    """Make this process the one main process of ``folder``. Unlike Snakemake's lock, which survives
    a kill, this one is the kernel's. Raises ``UserError`` when another process has it."""
    path = folder / LOCK
    path.parent.mkdir(exist_ok=True)
    lock = FileLock(path, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        problem = f"another run works in this folder ({path.read_text('utf-8')})"
        do = "wait until it has ended, or stop it with Ctrl-C or `kill` there; its jobs end with it"
        raise UserError(problem, where=folder.resolve(), do=do) from None
    path.write_text(f"{socket.gethostname()} pid {os.getpid()}", "utf-8")
    return lock


def begin(workflow: Any) -> None:
    """Begin a run in its main process, before the first job. Raises ``UserError`` where another run
    works in this folder, or left SLURM jobs: they would be submitted again."""
    _signals.clear()
    for number in (signal.SIGTERM, signal.SIGINT):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _stop)
    _locks[:] = [lock_folder(Path.cwd())]
    if on_slurm(workflow) and (jobs := left_jobs()):
        names = " and ".join(f"`scancel --name={run}`" for run in sorted({*jobs.values()}))
        problem = f"an earlier run left {len(jobs)} SLURM jobs, which would be submitted again"
        do = f"start again when they have ended, or end them with {names}"
        raise UserError(problem, where=Path.cwd(), do=do)


def end(workflow: Any, *, succeeded: bool) -> None:
    """End a run after its last job, with no job left in SLURM: the plug-in forgets to cancel those
    whose state it is just asking for. All jobs of this folder are this run's."""
    if not succeeded and on_slurm(workflow):
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            if jobs := left_jobs():
                subprocess.run(["scancel", *jobs], timeout=60, check=True)
    while _locks:
        _locks.pop().release()


def on_slurm(workflow: Any) -> bool:
    """Return whether the jobs of this workflow go to SLURM."""
    return getattr(workflow.executor_plugin, "name", None) == "slurm"


def _stop(number: int, _: object) -> None:
    """Answer the first signal: say so, ask the jobs to end, and raise ``KeyboardInterrupt``, on
    which Snakemake waits for them. The second one ends this process at once."""
    import psutil  # type: ignore[import-untyped]

    if _signals:
        if time.monotonic() - _signals[0] > SAME_REQUEST_SECONDS:
            os._exit(128 + number)
        return
    _signals.append(time.monotonic())
    with contextlib.suppress(OSError):
        # Not by print, in whose middle the signal may have come.
        os.write(2, STOPPING)
    for job in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            job.terminate()
    raise KeyboardInterrupt


def left_jobs() -> dict[str, str]:
    """Return by number the run of this user's jobs in SLURM's queue that Snakemake submitted in
    this folder. Raises what ``subprocess`` does when SLURM does not answer."""
    command = ["squeue", "--noheader", f"--user={os.getuid()}", "--format=%i %j %Z"]
    answer = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=60, check=True)
    lines = (line.split(maxsplit=2) for line in answer.stdout.splitlines())
    return {
        number: name
        for number, name, path in (words for words in lines if len(words) == 3)
        if RUN_NAME.fullmatch(name) and Path(path).resolve() == Path.cwd()
    }
