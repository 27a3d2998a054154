"""A watchdog for the polling of SLURM jobs, which has ways to wait for ever.

Known ones, of the executor plug-in 2.8: a status query that fails a few times in a row makes it
forget all its jobs; a job that ended and left SLURM's memory (MinJobAge) between two queries, or
whose state it does not know ("CANCELLED by 0" of sacct), counts as running; a sacct without a
database never answers at all. The first is prevented where it arises. For the rest, a thread asks
squeue itself, and what has been over or unknown there for several looks in a row, while Snakemake
still waits for it, is reported to Snakemake as what it is: finished, or failed and to be tried
again. Silence of SLURM ends no job.

Cancelling has a hole of the same kind: while a query is under way, the plug-in's list of jobs is
empty, and a run that is interrupted just then leaves its jobs behind. They are cancelled with the
listed ones.
"""

from __future__ import annotations

import importlib
import os
import re
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any

from mamushi.errors import UserError
from mamushi_runs.guard import squeue

Say = Callable[[str], None]

LOOKS = 5
"""So many looks in a row must agree. With 60 s between them this is longer than the 180 s after
which the plug-in asks again at the latest, so that it comes first wherever it can."""
LONGEST_PAUSE = 180
"""Seconds between two queries of the plug-in, at most."""
LONGEST = "MAMUSHI_POLL_SECONDS"
"""The environment variable that bounds this pause for a cluster that may be asked more often: one
query is for all jobs of the run."""
SUBMISSION_SECONDS = 1800.0
"""A job that is not submitted after this long is told of."""


# Settings that cannot work -----------------------------------------------------------------------


def check_settings(settings: Any, say: Say) -> None:
    """Refuse settings of the executor under which polling is known to hang.

    ``settings`` are those of the plug-in (``status_command``,
    ``init_seconds_before_status_checks``). Raises ``UserError`` and says what to set.
    """
    command = getattr(settings, "status_command", None) or "sacct"
    first = int(getattr(settings, "init_seconds_before_status_checks", None) or 40)
    if command == "squeue":
        try:
            age = _seconds(squeue.setting("MinJobAge"))
        except squeue.Unanswered as error:
            raise UserError(
                f"SLURM does not answer ({error})",
                where="scontrol show config",
                do="start again when it does",
            ) from None
        if age is not None and age < 3 * first:
            # The plug-in would quietly turn to sacct.
            do = (
                f"set slurm-init-seconds-before-status-checks to {age // 3} or less in the profile"
                if age >= 3
                else "set slurm-status-command: sacct in the profile"
            )
            raise UserError(
                f"this cluster forgets a job {age} s after its end (MinJobAge), too soon for a "
                f"first status check after {first} s (needed: three times as long)",
                where="slurm-status-command: squeue",
                do=do,
            )
        if age is not None and age <= LONGEST_PAUSE:
            say(
                f"This cluster forgets a job {age} s after its end (MinJobAge), and status checks "
                f"may be {LONGEST_PAUSE} s apart: some jobs may be noticed minutes after their end."
            )
        return
    try:
        squeue.ask("sacct", "--noheader", "--allocations", "--starttime=now", "--format=JobIDRaw")
    except squeue.Unanswered as error:
        raise UserError(
            f"no accounting answers on this cluster ({error}), so that the run would wait for its "
            "first job for ever",
            where=f"slurm-status-command: {command}",
            do="set slurm-status-command: squeue in the profile",
        ) from None
    say(
        "slurm-status-command: sacct takes cancelled jobs for running ones until the watchdog has "
        "noticed; squeue does not."
    )


def _seconds(value: str | None) -> int | None:
    """``300 sec`` as 300; None for what is no number of seconds."""
    match = re.match(r"(\d+)\s*(s|sec|$)", value or "")
    return int(match[1]) if match else None


# The looks ---------------------------------------------------------------------------------------


class Looks:
    """Counts for how many looks in a row SLURM has had an awaited job as over or unknown."""

    def __init__(self, needed: int) -> None:
        self.needed = needed
        self._counts: dict[str, int] = {}

    def take(self, awaited: Iterable[str], states: Mapping[str, str]) -> dict[str, str | None]:
        """The jobs that are decided with this look, and the state of each; None where SLURM does
        not know it.

        ``states`` is what SLURM said now, by id. A member of an array may stand under the id of
        the whole.
        """
        seen = {job: states.get(job, states.get(job.partition("_")[0])) for job in awaited}
        self._counts = {
            job: self._counts.get(job, 0) + 1
            for job, state in seen.items()
            if state is None or state in squeue.OVER
        }
        return {job: seen[job] for job, count in self._counts.items() if count >= self.needed}


class Watchdog(threading.Thread):
    """Watches the jobs of one executor. See the module for what it does.

    ``interval``: seconds between looks. ``looks``: how many must agree.
    """

    def __init__(
        self, executor: Any, scheduler: Any, say: Say, *, interval: float, looks: int = LOOKS
    ) -> None:
        super().__init__(name="mamushi-watchdog", daemon=True)
        self._executor = executor
        self._scheduler = scheduler
        self._say = say
        self._interval = interval
        self._looks = Looks(looks)
        self._lock = threading.Lock()
        # What Snakemake waits for, by id of SLURM, and what was decided on it.
        self._awaited: dict[str, Any] = {}
        self._decided: dict[str, str | None] = {}
        self._since: dict[Any, float] = {}
        self._told: set[Any] = set()
        self._silent = 0
        self._over = threading.Event()
        self._install()

    # In the executor's own threads

    def _install(self) -> None:
        """Stand between the executor and its status check.

        An attribute of this one object, not of the class: other executors stay what they are. The
        check runs in the executor's own loop, which is where a plug-in reports what became of a
        job; so the watchdog reports nowhere else.
        """
        executor = self._executor
        submitted, succeeded, failed = (
            executor.report_job_submission,
            executor.report_job_success,
            executor.report_job_error,
        )
        check, cancel = executor.check_active_jobs, executor.cancel_jobs

        def report_job_submission(info: Any, *args: Any, **kwargs: Any) -> None:
            if info.external_jobid is not None:
                with self._lock:
                    self._awaited[str(info.external_jobid)] = info
            submitted(info, *args, **kwargs)

        def forget(info: Any) -> None:
            with self._lock:
                self._awaited.pop(str(info.external_jobid), None)
                self._decided.pop(str(info.external_jobid), None)

        def report_job_success(info: Any) -> None:
            forget(info)
            succeeded(info)

        def report_job_error(info: Any, *args: Any, **kwargs: Any) -> None:
            forget(info)
            failed(info, *args, **kwargs)

        async def check_active_jobs(active: list[Any]) -> AsyncIterator[Any]:
            yielded = set()
            async for info in check(active):
                yielded.add(id(info))
                if not self._report(info):
                    yield info
            for info in active:
                # Neither finished nor still running: the query failed, and the plug-in would
                # never ask for this job again.
                if id(info) not in yielded and self._is_awaited(info) and not self._report(info):
                    yield info
            if LONGEST in os.environ:
                executor.next_seconds_between_status_checks = min(
                    executor.next_seconds_between_status_checks, float(os.environ[LONGEST])
                )

        def cancel_jobs(active: list[Any]) -> None:
            with self._lock:
                unlisted = [info for info in self._awaited.values() if info not in active]
            cancel([*active, *unlisted])

        executor.report_job_submission = report_job_submission
        executor.report_job_success = report_job_success
        executor.report_job_error = report_job_error
        executor.check_active_jobs = check_active_jobs
        executor.cancel_jobs = cancel_jobs

    def _is_awaited(self, info: Any) -> bool:
        with self._lock:
            return str(info.external_jobid) in self._awaited

    def _report(self, info: Any) -> bool:
        """Report a job that is decided; whether it was."""
        job = str(info.external_jobid)
        with self._lock:
            if job not in self._decided:
                return False
            state = self._decided[job]
        if state == "COMPLETED":
            self._executor.report_job_success(info)
        else:
            self._executor.report_job_error(
                info,
                msg=f"SLURM job {job} {_became(state)}, and Snakemake still waited for it. It is "
                "tried again where retries are left; otherwise start the run again: what the job "
                "finished is taken over. ",
            )
        return True

    # In the thread of its own

    def run(self) -> None:
        """Look until ``stop``."""
        while not self._over.wait(self._interval):
            try:
                self.look()
            except Exception as error:
                # A watchdog that fails must not take the run with it.
                self._say(f"The watchdog of SLURM jobs ends: {type(error).__name__}: {error}")
                return

    def stop(self) -> None:
        """No further looks."""
        self._over.set()

    def look(self) -> None:
        """Ask SLURM once, decide what is to be decided, warn of what can only be told."""
        with self._lock:
            awaited = list(self._awaited)
        self._look_for_unsubmitted(len(awaited))
        self._look_for_polling()
        if not awaited:
            return
        try:
            states = squeue.states(self._executor.run_uuid)
        except squeue.Unanswered as error:
            self._silent += 1
            # After 5, 10, 20, 40 ... looks.
            if (
                self._silent >= LOOKS
                and (self._silent // LOOKS).bit_count() == 1
                and (self._silent % LOOKS == 0)
            ):
                self._say(
                    f"SLURM has not answered {self._silent} times in a row ({error}). "
                    f"{len(awaited)} jobs are awaited; nothing is ended, and the run goes on when "
                    "SLURM answers."
                )
            return
        self._silent = 0
        decided = self._looks.take(awaited, states)
        with self._lock:
            # One that was reported since SLURM was asked is no longer of interest.
            new = {
                job: state
                for job, state in decided.items()
                if job in self._awaited and job not in self._decided
            }
        unknown = [job for job, state in new.items() if state is None]
        new.update(squeue.accounted(unknown))
        for job, state in new.items():
            self._say(
                f"SLURM job {job} {_became(state)} for {self._looks.needed} looks in a row, while "
                "Snakemake waits for it; it is taken as "
                f"{'finished' if state == 'COMPLETED' else 'failed'}."
            )
        with self._lock:
            # A job may have been reported in between.
            self._decided.update((job, new[job]) for job in new if job in self._awaited)

    def _look_for_unsubmitted(self, awaited: int) -> None:
        """Tell of jobs whose submission takes very long, such as with an sbatch that hangs."""
        now = time.monotonic()
        with self._lock:
            known = {id(info.job) for info in self._awaited.values()}
        waiting = [
            job
            for job in list(self._scheduler.running)
            if not job.is_local and id(job) not in known
        ]
        self._since = {job: self._since.get(job, now) for job in waiting}
        late = {job for job, begun in self._since.items() if now - begun > SUBMISSION_SECONDS}
        if late - self._told:
            self._say(
                f"{len(late)} jobs have not been submitted for {SUBMISSION_SECONDS / 60:.0f} "
                f"minutes, beside {awaited} that have: does `sbatch` answer on this machine?"
            )
        self._told = late

    def _look_for_polling(self) -> None:
        """End the run when the thread that polls has died: nothing would ever finish."""
        if self._executor.wait_thread.is_alive() or not self._executor.wait:
            return
        self._over.set()
        error = importlib.import_module("snakemake.exceptions").WorkflowError
        self._scheduler.executor_error_callback(
            error(
                "The polling of SLURM jobs has stopped. The jobs go on; start the run again: it "
                "asks what to do with them, and takes over what they finish."
            )
        )


def _became(state: str | None) -> str:
    return "has been unknown to SLURM" if state is None else f"has been {state} in SLURM"


_RUNNING: list[Watchdog] = []


def start(workflow: Any, say: Say) -> None:
    """Watch the jobs of this run's executor, from before the first is submitted.

    Seconds between looks: 60, or ``$MAMUSHI_WATCHDOG_SECONDS``.
    """
    scheduler = workflow.scheduler
    executor = getattr(scheduler, "_executor", None)
    needed = (
        *("check_active_jobs", "cancel_jobs", "report_job_submission"),
        *("wait_thread", "wait", "run_uuid"),
    )
    if missing := [name for name in needed if not hasattr(executor, name)]:
        say(
            "No watchdog over SLURM jobs: this version of Snakemake's executor has no "
            f"{', '.join(missing)}."
        )
        return
    interval = float(os.environ.get("MAMUSHI_WATCHDOG_SECONDS", "60"))
    watchdog = Watchdog(executor, scheduler, say, interval=interval)
    _RUNNING.append(watchdog)
    watchdog.start()


def stop() -> None:
    """No further looks at this run's jobs."""
    while _RUNNING:
        _RUNNING.pop().stop()
