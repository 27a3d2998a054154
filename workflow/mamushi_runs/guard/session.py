"""One main process per folder, what an earlier one left behind, and nothing left at the end.

A main process that was killed leaves its SLURM jobs, and a restart would submit them once more. So
a run does not start while there are any. ``BEGUN``, which is there from the begin of a run to its
success, says since when results may lack Snakemake's record: see ``unrecorded``.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mamushi.errors import UserError
from mamushi.io.files import writable
from mamushi.running import locks
from mamushi_runs.guard import squeue, stop, unrecorded

LOCK = Path(".snakemake") / "mamushi-main.json"
"""In the working directory: locked by its main process, and saying which that is."""
BEGUN = LOCK.with_name("mamushi-begun")
"""Made at the begin of a run, with that time, and deleted when one succeeds."""
STOPPED = LOCK.with_name("mamushi-stopped")
"""Made at Ctrl-C: `sbatch` submits nothing from then on (see bin/sbatch)."""
SUBMIT = Path(__file__).with_name("bin")
"""In front of the search path of a run on SLURM: an `sbatch` that waits for room in the queue."""
LOOK = 0.5
"""Seconds between two looks at the commands that an earlier run left on this machine."""
SHOWN = 5
"""So many jobs are named one by one."""

HELD = "MAMUSHI_RUN_LOCK"
"""Descriptor of the lock, which a Snakemake that `mamushi` started has from that process: the run
has it from before Snakemake's own lock to the end of the last of the two."""

SAY = logging.getLogger("snakemake.logging").warning
_held: list[contextlib.ExitStack] = []


def hold(folder: Path) -> locks.Lock | None:
    """Make this process the one main process of ``folder``; None where no locks are possible.
    Unlike Snakemake's lock, which is a list of files that survives a kill and that ``--unlock``
    removes under a living run, this one is the kernel's: it goes with the process, and only then.
    Raises ``UserError`` when another process has it."""
    path = folder / LOCK
    path.parent.mkdir(exist_ok=True)
    try:
        lock = _handed_over(path) or locks.attempt(path, "run")
    except OSError as error:
        if error.errno not in locks.UNSUPPORTED:
            raise
        SAY(f"{path}: no locks here ({error.strerror}); start no second run while this one lives")
        return None
    if lock is None:
        raise UserError(
            f"another run works in this folder ({locks.describe(locks.holder(path))})",
            where=folder.resolve(),
            do="wait until it has ended, or stop it with Ctrl-C or `kill` there (its jobs end with "
            "it); another run at the same time needs a folder of its own (--directory)",
        )
    return lock


def _handed_over(path: Path) -> locks.Lock | None:
    """Return the lock of this file that the process before has taken for this one."""
    with contextlib.suppress(OSError, ValueError):
        descriptor = int(os.environ.pop(HELD, ""))
        if os.path.samestat(os.fstat(descriptor), path.stat()):
            os.set_inheritable(descriptor, False)
            return locks.adopt(path, descriptor, "run")
    return None


def take(folder: Path) -> locks.Lock | None:
    """Make this process the main one of the folder, as ``hold``, and remove the lock of Snakemake
    that a killed run left, so that the same command goes on. What it left in SLURM is looked for
    when the next one begins. Raises ``UserError`` where a run lives in it, and ``OSError`` where
    nothing can be written."""
    with writable(path := folder / LOCK):
        left = [*(folder / ".snakemake").glob("locks/*.lock")]
    # Who ends by itself signs off. Without either it was another workflow's run.
    killed = bool(locks.holder(path)) or (folder / BEGUN).exists()
    if (lock := hold(folder)) is not None and left and killed:
        for each in left:
            each.unlink(missing_ok=True)
        SAY(f"{folder}: an earlier run was killed; going on from what it finished")
    return lock


def begin(workflow: Any) -> None:
    """Begin a run in its main process, before the first job. Raises ``UserError`` where it must not
    start."""
    folder, slurm = Path.cwd(), _on_slurm(workflow)
    if workflow.resource_settings.cores == 0 and not slurm:
        raise UserError("0 cores run no job", where="--cores", do="give 1 or more, or all")
    stop.listen(folder / STOPPED)
    with contextlib.ExitStack() as held:
        if (lock := hold(folder)) is not None:
            held.callback(lock.sign_off)
        refuse_left_jobs(folder, required=slurm)
        wait_for_orphans(folder)
        begun = folder / BEGUN
        if begun.exists():
            # A run after one that was killed, killed itself, leaves the results of both.
            unrecorded.look_again(workflow, since=begun.stat().st_mtime, say=SAY)
        else:
            begun.touch()
        (folder / STOPPED).unlink(missing_ok=True)
        _held.append(held.pop_all())
    if slurm:
        os.environ["PATH"] = os.pathsep.join([str(SUBMIT), os.environ["PATH"]])


def _on_slurm(workflow: Any) -> bool:
    return getattr(workflow.executor_plugin, "name", None) == "slurm"


def end(workflow: Any, *, succeeded: bool) -> None:
    """End a run after the last job: nothing of it is left, and another one may start here."""
    folder = Path.cwd()
    if succeeded:
        (folder / BEGUN).unlink(missing_ok=True)
    elif _on_slurm(workflow):
        _cancel_forgotten(folder)
    (folder / STOPPED).unlink(missing_ok=True)
    while _held:
        _held.pop().close()


def _cancel_forgotten(folder: Path) -> None:
    """Cancel the jobs that Snakemake has not cancelled when it was interrupted. The plug-in's list
    of jobs is empty while it asks SLURM for their states, and it goes on to submit what was waiting
    for its turn. All jobs of this folder are this run's: it has the lock, and there were none when
    it began."""
    try:
        if jobs := squeue.jobs_of(folder):
            SAY(f"Cancelling {describe(jobs)}.")
            squeue.cancel([job.id for job in jobs])
    except squeue.Unanswered as error:
        SAY(f"SLURM does not answer ({error}): jobs may be left; the next run will tell.")


def refuse_left_jobs(folder: Path, *, required: bool) -> None:
    """Raise ``UserError`` when an earlier run left SLURM jobs, or this run needs SLURM
    (``required``) and it does not answer."""
    try:
        # A run that needs no SLURM does not wait for one that is down.
        jobs = squeue.jobs_of(folder, None if required else 1)
    except squeue.Unanswered as error:
        if required:
            raise unanswered(error) from None
        SAY(f"SLURM does not answer ({error}): jobs of an earlier run would not be noticed.")
        return
    if jobs:
        runs = " and ".join(f"`scancel --name={run}`" for run in sorted({job.run for job in jobs}))
        raise UserError(
            f"an earlier run left {describe(jobs)}. A run that starts now would submit the same "
            "again",
            where=folder.resolve(),
            do=f"start again when they have ended, which takes over what they finish; or end them "
            f"with {runs}, after which it goes on from their checkpoints",
        )


def unanswered(error: squeue.Unanswered) -> UserError:
    """Return the error of a SLURM that must answer and does not."""
    return UserError(
        f"SLURM does not answer ({error}), so nobody knows whether jobs of an earlier run still "
        "work in this folder",
        where="squeue",
        do="start again when `squeue` answers; nothing is lost meanwhile",
    )


def describe(jobs: Sequence[squeue.Job]) -> str:
    """Return the jobs in words, the first of them one by one."""
    first = "; ".join(f"{job.id} {job.state} {job.rule}".strip() for job in jobs[:SHOWN])
    more = f"; and {len(jobs) - SHOWN} more" if len(jobs) > SHOWN else ""
    return f"{len(jobs)} SLURM job{'s' * (len(jobs) > 1)}: {first}{more}"


def orphans(folder: Path) -> list[int]:
    """Return the processes on this machine that run stages of Mamushi in ``folder``, by number.
    None of them can be a child of this run when it is asked before the first job. Steps of SLURM
    jobs are left out, since SLURM tells of them. Empty without a /proc."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        # Processes end while one looks at them, and others' are closed to us.
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes()
            if b"\0-m\0mamushi\0" not in words or b"python" not in words.split(b"\0")[0]:
                continue
            # A command for people has no settings: perhaps it started this run.
            if b"\0--settings\0" not in words:
                continue
            inside = b"\0SLURM_JOB_ID=" in b"\0" + (entry / "environ").read_bytes()
            if not inside and Path(os.readlink(entry / "cwd")) == folder.resolve():
                found.append(int(entry.name))
    return sorted(found)


def wait_for_orphans(folder: Path) -> None:
    """Wait until the commands that an earlier run left on this machine have ended. Snakemake
    deletes what a job is to make before the job starts: beside a command that is about to finish
    the same, its result would go, and be computed again."""
    before: list[int] = []
    while found := orphans(folder):
        if found != before:
            before = found
            SAY(
                "Waiting for commands of an earlier run, whose results this one takes over: pid "
                f"{', '.join(map(str, found))}. Ctrl-C ends the wait, `kill` such a command."
            )
        time.sleep(LOOK)
