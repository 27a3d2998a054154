"""One writer per file: what an earlier run left behind, and a second run in the same folder.

A main process that was killed leaves its jobs running. A restart would submit the same jobs once
more; their claims (``mamushi.running.claims``) keep two commands from writing one file, and this
module is the layer above: it sees the jobs that are left and asks what to do with them.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import json
import os
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mamushi.errors import UserError
from mamushi_runs.guard import squeue

CHOICE = "MAMUSHI_LEFTOVER"
"""The environment variable that says what to do with jobs that are left."""
POLICIES = {
    "wait": "wait until they have ended, then go on",
    "adopt": "go on at once; a job for a file that one of them works on waits for it, and takes "
    "over its result",
    "cancel": "cancel them, then go on from their checkpoints",
}
RECORD = Path(".snakemake") / "mamushi-main.json"
"""In the working directory: locked by its main process, and saying which that is."""
SHOWN = 5
"""So many jobs are named one by one."""

Say = Callable[[str], None]


# The main process --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Main:
    """A main process of Snakemake: where it runs."""

    host: str
    pid: int

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


class Hold:
    """The lock on a working directory, held until the process ends or ``release`` is called.

    ``killed`` is when the main process before this one began, in seconds since 1970, where that
    one ended without a word; else None.
    """

    def __init__(self, descriptor: int, killed: float | None) -> None:
        self._descriptor: int | None = descriptor
        self.killed = killed

    def release(self, *, settled: bool) -> None:
        """Let another main process in.

        ``settled``: whether nothing is left to be done of what a killed process began; else the
        next process finds what this one found.
        """
        if self._descriptor is not None:
            kept = None if settled else self.killed
            _write(self._descriptor, {} if kept is None else {"begun": kept})
            os.close(self._descriptor)
            self._descriptor = None


def hold(folder: str | os.PathLike[str], say: Say) -> Hold | None:
    """Make this process the one main process of ``folder``.

    Unlike Snakemake's lock, which is a list of files that survives a kill and that ``--unlock``
    removes under a living run, this one is the kernel's: it goes with the process, and only then.
    Raises ``UserError`` when another process has it. None where the file system has no locks.
    """
    path = Path(folder) / RECORD
    path.parent.mkdir(exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        other = _read(descriptor)
        os.close(descriptor)
        raise UserError(
            f"another run works in this folder ({other or 'its process is not known'})",
            where=Path(folder).resolve(),
            do="wait until it has ended, or stop it with Ctrl-C or `kill` there (its jobs end with "
            "it); another run at the same time needs a folder of its own (--directory)",
        ) from None
    except OSError as error:
        os.close(descriptor)
        if error.errno not in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL):
            raise
        say(
            f"{path}: this file system has no locks ({error.strerror}); start no second run in "
            "this folder while this one lives"
        )
        return None
    killed = _record(descriptor).get("begun")
    killed = float(killed) if isinstance(killed, int | float) else None
    # A run after a killed one that is killed itself leaves both behind.
    begun = time.time() if killed is None else killed
    _write(descriptor, {"host": socket.gethostname(), "pid": os.getpid(), "begun": begun})
    return Hold(descriptor, killed)


def main_process(folder: str | os.PathLike[str]) -> Main | str | None:
    """The living main process of ``folder``: None if there is none, a text if it is not known."""
    try:
        descriptor = os.open(Path(folder) / RECORD, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read(descriptor) or "its process is not known"
    except OSError:
        # No locks here: the record alone is no proof of life.
        return None
    finally:
        os.close(descriptor)
    return None


def _read(descriptor: int) -> Main | None:
    record = _record(descriptor)
    with contextlib.suppress(KeyError, TypeError, ValueError):
        return Main(str(record["host"]), int(str(record["pid"])))
    return None


def _record(descriptor: int) -> dict[str, object]:
    with contextlib.suppress(ValueError):
        record = json.loads(os.pread(descriptor, 4096, 0))
        return record if isinstance(record, dict) else {}
    return {}


def _write(descriptor: int, record: dict[str, object]) -> None:
    # In place: a new file would be without the lock.
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{json.dumps(record)}\n".encode(), 0)


# What an earlier run left ------------------------------------------------------------------------


def named(jobs: Sequence[squeue.Job]) -> str:
    """The jobs in words, the first of them one by one."""
    counted = ", ".join(
        f"{count} {state.lower()}" for state, count in Counter(job.state for job in jobs).items()
    )
    first = "; ".join(f"{job.id} {job.state} {job.rule}".strip() for job in jobs[:SHOWN])
    more = f"; and {len(jobs) - SHOWN} more" if len(jobs) > SHOWN else ""
    return f"{plural(len(jobs), 'SLURM job')} of an earlier run ({counted}): {first}{more}"


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def policy(given: str | None) -> str | None:
    """The policy that was asked for; None for none. Raises ``UserError`` for an unknown one."""
    if not given:
        return None
    if given not in POLICIES:
        raise UserError(
            f"{given!r} is no way to deal with left jobs",
            where=CHOICE,
            do=f"set it to {', '.join(POLICIES)}",
        )
    return given


def settle(
    folder: str | os.PathLike[str],
    *,
    required: bool,
    say: Say,
    stop: Callable[[], bool] = lambda: False,
) -> None:
    """Deal with SLURM jobs that an earlier run of this folder left, as ``$MAMUSHI_LEFTOVER`` says.

    ``required``: whether this run submits to SLURM, and so needs an answer of it. ``stop`` ends a
    wait early. Raises ``UserError`` when there are jobs and nothing was chosen.
    """
    chosen = policy(os.environ.get(CHOICE))
    if not squeue.available():
        return
    try:
        # A run that needs no SLURM does not wait for one that is down.
        jobs = squeue.jobs_of(folder, patient=required)
    except squeue.Unanswered as error:
        if required:
            raise UserError(
                f"SLURM does not answer ({error}), so nobody knows whether jobs of an earlier run "
                "still work in this folder",
                where="squeue",
                do="start again when `squeue` answers; nothing is lost meanwhile",
            ) from None
        say(f"SLURM does not answer ({error}): jobs of an earlier run would not be noticed.")
        return
    if not jobs:
        return
    if chosen is None:
        choices = "  ".join(
            f"[{name}] `{CHOICE}={name}` before the same command: {what}."
            for name, what in POLICIES.items()
        )
        raise UserError(
            f"{named(jobs)}. A run that starts now would submit the same jobs again",
            where=Path(folder).resolve(),
            do=f"choose one of three: {choices}",
        )
    say(f"{named(jobs)}.")
    if chosen == "adopt":
        say("Going on: jobs for the same files wait for them and take over their results.")
    else:
        end(folder, jobs, cancelled=chosen == "cancel", say=say, stop=stop)


def end(
    folder: str | os.PathLike[str],
    jobs: Sequence[squeue.Job],
    *,
    cancelled: bool,
    say: Say,
    stop: Callable[[], bool] = lambda: False,
) -> None:
    """Wait until none of the jobs is left, after cancelling them if so wished.

    Raises ``UserError`` when they cannot be cancelled or ``stop`` said so.
    """
    if cancelled:
        try:
            squeue.cancel([job.id for job in jobs])
        except squeue.Unanswered as error:
            raise UserError(
                f"could not cancel {plural(len(jobs), 'job')} ({error})",
                where="scancel",
                do="try again when SLURM answers",
            ) from None
    wanted = {job.id for job in jobs}
    pause = float(os.environ.get("MAMUSHI_POLL_SECONDS", "15"))
    begun = told = time.monotonic()
    before: tuple[str, ...] | None = None
    while True:
        try:
            left = [job for job in squeue.jobs_of(folder) if job.id in wanted]
        except squeue.Unanswered as error:
            say(f"SLURM does not answer ({error}); still waiting.")
        else:
            if not left:
                say("All jobs of the earlier run have ended.")
                return
            now = tuple(f"{job.id} {job.state}" for job in left)
            if now != before or time.monotonic() - told > 600:
                minutes = (time.monotonic() - begun) / 60
                say(f"Waiting for {named(left)} ({minutes:.0f} min so far; Ctrl-C ends the wait).")
                before, told = now, time.monotonic()
        if stop():
            raise UserError("stopped while it waited", do="start again when you like")
        time.sleep(pause)


def local_orphans(folder: str | os.PathLike[str]) -> list[int]:
    """Processes of this user on this machine that run stages of Mamushi in ``folder``, by number.

    None of them can be a child of this run when it is asked before the first job. Steps of SLURM
    jobs are left out, since SLURM tells of them. Empty without a /proc.
    """
    own = Path(folder).resolve()
    return sorted(pid for pid, words in _processes(own) if _is_stage(words))


def _is_stage(words: list[str]) -> bool:
    pairs = itertools.pairwise(words)
    return "python" in os.path.basename(words[0] if words else "") and ("-m", "mamushi") in pairs


def _processes(folder: Path) -> Iterator[tuple[int, list[str]]]:
    """Number and command line of this user's processes in a folder, but for those of SLURM."""
    try:
        entries = [entry for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    except OSError:
        return
    for entry in entries:
        # Processes end while one looks at them, and others' are closed to us.
        with contextlib.suppress(OSError):
            if entry.stat().st_uid != os.getuid() or Path(os.readlink(entry / "cwd")) != folder:
                continue
            if b"\0SLURM_JOB_ID=" in b"\0" + (entry / "environ").read_bytes():
                continue
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            yield int(entry.name), words
