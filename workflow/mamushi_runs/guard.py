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
QUEUE_SECONDS = 60
"""After so long, a command of SLURM counts as unanswered."""
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
        raise UserError(
            f"another run works in this folder ({path.read_text('utf-8')})",
            where=folder.resolve(),
            do="wait until it has ended, or stop it with Ctrl-C or `kill` there (its jobs end with "
            "it); another run at the same time needs a folder of its own (--directory)",
        ) from None
    path.write_text(f"{socket.gethostname()} pid {os.getpid()}", "utf-8")
    return lock


def begin(workflow: Any) -> None:
    """Begin a run in its main process, before the first job. Raises ``UserError`` where it must not
    start."""
    if workflow.resource_settings.cores == 0 and not on_slurm(workflow):
        raise UserError("0 cores run no job", where="--cores", do="give 1 or more, or all")
    _signals.clear()
    for number in (signal.SIGTERM, signal.SIGINT):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _stop)
    _locks[:] = [lock_folder(Path.cwd())]
    if on_slurm(workflow):
        refuse_left_jobs(Path.cwd())


def end(workflow: Any, *, succeeded: bool) -> None:
    """End a run after its last job, with no job left in SLURM: the plug-in forgets to cancel those
    whose state it is just asking for. All jobs of this folder are this run's."""
    if not succeeded and on_slurm(workflow):
        with contextlib.suppress(UserError):
            if jobs := left_jobs(Path.cwd()):
                _ask("scancel", *jobs)
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


# What a killed run left in SLURM ------------------------------------------------------------------


def left_jobs(folder: Path) -> dict[str, str]:
    """Return by number the run of this user's jobs in SLURM's queue that Snakemake submitted in
    ``folder``. Raises ``UserError`` when SLURM does not answer."""
    answer = _ask("squeue", "--noheader", f"--user={os.getuid()}", "--format=%i %j %Z")
    lines = (line.split(maxsplit=2) for line in answer.splitlines())
    return {
        number: name
        for number, name, path in (words for words in lines if len(words) == 3)
        if RUN_NAME.fullmatch(name) and Path(path).resolve() == folder.resolve()
    }


def refuse_left_jobs(folder: Path) -> None:
    """Raise ``UserError`` when an earlier run left SLURM jobs: they would be submitted again."""
    if jobs := left_jobs(folder):
        names = " and ".join(f"`scancel --name={run}`" for run in sorted({*jobs.values()}))
        raise UserError(
            f"an earlier run left {len(jobs)} SLURM jobs, such as {min(jobs)}, which would be "
            "submitted again",
            where=folder.resolve(),
            do="start again when they have ended; or end them "
            f"with {names}, after which it goes on from their checkpoints",
        )


def _ask(*command: str) -> str:
    """Return the output of a SLURM command. Raises ``UserError`` when it fails."""
    try:
        return subprocess.run(
            command, capture_output=True, text=True, timeout=QUEUE_SECONDS, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        words = str(getattr(error, "stderr", None) or error).strip()
        do = "start again when it answers; nothing is lost meanwhile"
        raise UserError(f"SLURM does not answer ({words})", where=command[0], do=do) from None
