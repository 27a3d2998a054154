"""The watchdog over the polling of SLURM jobs, on the plug-in's own polling loop.

The executor here is the plug-in's, with its loop and its status check as they are; only its
construction, which needs a whole workflow, is left out, and SLURM's commands are stand-ins.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from snakemake_executor_plugin_slurm import Executor
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo
from throttler import Throttler

from mamushi.errors import UserError
from mamushi_runs.guard import squeue, watchdog
from tests.support.slurm_commands import UUID, Commands, install

LOOK = 0.05


class Job:
    """What the executor needs of a job."""

    is_local = False

    def register(self, external_jobid: str) -> None: ...

    def log_error(self, msg: str, **kwargs: Any) -> None:
        self.error = msg


class Scheduler:
    """What became of the jobs, as the scheduler is told."""

    def __init__(self) -> None:
        self.running: set[Job] = set()
        self.finished: list[Job] = []
        self.failed: list[Job] = []
        self.errors: list[Exception] = []

    def submit_callback(self, job: Job) -> None: ...

    def finish_callback(self, job: Job) -> None:
        self.running.discard(job)
        self.finished.append(job)

    def error_callback(self, job: Job) -> None:
        self.running.discard(job)
        self.failed.append(job)

    def executor_error_callback(self, error: Exception) -> None:
        self.errors.append(error)


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    monkeypatch.setattr(squeue.ask, "__kwdefaults__", {"attempts": 1, "pause": 0.0})
    return install(tmp_path / "bin", monkeypatch)


@pytest.fixture
def executor(slurm: Commands, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The plug-in's executor with its thread running, polling every 50 ms."""
    made = Executor.__new__(Executor)
    scheduler = Scheduler()
    made.workflow = SimpleNamespace(
        scheduler=scheduler,
        executor_settings=SimpleNamespace(
            status_command="squeue",
            status_attempts=2,
            init_seconds_before_status_checks=1,
            keep_successful_logs=True,
            requeue=False,
        ),
        executor_plugin=SimpleNamespace(
            common_settings=SimpleNamespace(init_seconds_before_status_checks=0)
        ),
        remote_execution_settings=SimpleNamespace(seconds_between_status_checks=LOOK),
    )
    made.logger = logging.getLogger("test")
    made.run_uuid = UUID
    made.active_jobs = []
    made.lock = threading.Lock()
    made.wait = True
    made.status_rate_limiter = Throttler(rate_limit=1000, period=1)
    made._preemption_warning = False
    made._status_query_calls = made._status_query_failures = 0
    made._status_query_total_seconds = made._status_query_max_seconds = 0.0
    made._status_query_min_seconds = None
    made._status_query_cycle_rows = []
    # The back-off of 10 s and more would make a test long.
    monkeypatch.setattr(
        Executor,
        "next_seconds_between_status_checks",
        property(lambda self: LOOK, lambda self, value: None),
    )
    made.wait_thread = threading.Thread(target=made._wait_thread, daemon=True)
    made.wait_thread.start()
    yield made
    made.wait = False
    made.wait_thread.join(timeout=10)


def watch(executor: Any, said: list[str], looks: int = 3) -> watchdog.Watchdog:
    guard = watchdog.Watchdog(
        executor, executor.workflow.scheduler, said.append, interval=LOOK, looks=looks
    )
    guard.start()
    return guard


def submit(executor: Any, number: int) -> Job:
    job = Job()
    executor.workflow.scheduler.running.add(job)
    executor.report_job_submission(
        SubmittedJobInfo(job, external_jobid=str(number), aux={"slurm_logfile": Path("none")})
    )
    return job


def row(number: int, state: str) -> tuple[str, str, str, str, str]:
    return (str(number), state, UUID, "rule_retrain", "/run")


def soon(condition: Callable[[], Any], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "nothing happened"
        time.sleep(0.02)


# The polling loop with and without it


def lost_by_a_failing_query(slurm: Commands, executor: Any) -> Job:
    """A job is submitted, SLURM is away for some queries, comes back, and the job ends."""
    slurm.jobs(row(1, "RUNNING"))
    job = submit(executor, 1)
    soon(lambda: executor._status_query_calls > 0)
    slurm.down()
    soon(lambda: executor._status_query_failures >= 2)
    slurm.up()
    slurm.jobs(row(1, "COMPLETED"))
    return job


def test_without_a_watchdog_a_failing_query_loses_a_job(slurm: Commands, executor: Any) -> None:
    """The reason for it. When this fails, the plug-in has been repaired."""
    lost_by_a_failing_query(slurm, executor)
    time.sleep(2)
    assert executor.workflow.scheduler.finished == []
    assert executor.active_jobs == []


def test_a_failing_query_loses_no_job(slurm: Commands, executor: Any) -> None:
    said: list[str] = []
    guard = watch(executor, said, looks=10**6)
    job = lost_by_a_failing_query(slurm, executor)
    soon(lambda: executor.workflow.scheduler.finished == [job])
    guard.stop()
    assert executor.workflow.scheduler.failed == []


def test_jobs_end_as_without_it(slurm: Commands, executor: Any) -> None:
    said: list[str] = []
    guard = watch(executor, said, looks=10**6)
    slurm.jobs(row(1, "RUNNING"), row(2, "RUNNING"), row(3, "PENDING"))
    jobs = [submit(executor, number) for number in (1, 2, 3)]
    soon(lambda: executor._status_query_calls > 2)
    slurm.jobs(row(1, "COMPLETED"), row(2, "FAILED"), row(3, "RUNNING"))
    scheduler = executor.workflow.scheduler
    soon(lambda: scheduler.finished and scheduler.failed)
    assert (scheduler.finished, scheduler.failed) == ([jobs[0]], [jobs[1]])
    assert scheduler.running == {jobs[2]}
    guard.stop()
    assert said == []


@pytest.mark.parametrize(
    ("accounting", "finished"),
    [
        ("1|COMPLETED\n2|RUNNING\n", True),
        ("1|CANCELLED by 0\n", False),
        (None, False),
    ],
    ids=["completed", "cancelled", "no accounting"],
)
def test_a_job_that_slurm_forgot_ends_its_wait(
    slurm: Commands, executor: Any, accounting: str | None, finished: bool
) -> None:
    if accounting is not None:
        slurm.accounting(accounting)
    said: list[str] = []
    guard = watch(executor, said)
    slurm.jobs(row(1, "RUNNING"), row(2, "RUNNING"))
    job, other = submit(executor, 1), submit(executor, 2)
    soon(lambda: executor._status_query_calls > 1)
    slurm.jobs(row(2, "RUNNING"))
    scheduler = executor.workflow.scheduler
    soon(lambda: scheduler.finished or scheduler.failed)
    assert scheduler.finished == ([job] if finished else [])
    assert scheduler.failed == ([] if finished else [job])
    assert scheduler.running == {other}
    time.sleep(5 * LOOK)
    guard.stop()
    (line,) = said
    assert line.startswith("SLURM job 1 has been") and "for 3 looks in a row" in line
    if not finished:
        assert "start the run again" in job.error


def test_a_state_that_the_plug_in_does_not_know_ends_its_wait(
    slurm: Commands, executor: Any
) -> None:
    """As with sacct's "CANCELLED by 0"; here a revoked job."""
    said: list[str] = []
    guard = watch(executor, said)
    slurm.jobs(row(1, "REVOKED"))
    job = submit(executor, 1)
    soon(lambda: executor.workflow.scheduler.failed == [job])
    guard.stop()
    assert "has been REVOKED in SLURM for 3 looks" in said[0]


def test_silence_of_slurm_ends_no_job(slurm: Commands, executor: Any) -> None:
    said: list[str] = []
    guard = watch(executor, said)
    slurm.jobs(row(1, "RUNNING"))
    job = submit(executor, 1)
    slurm.down()
    soon(lambda: len(said) >= 2)
    assert "SLURM has not answered 5 times in a row" in said[0]
    assert "10 times" in said[1]
    scheduler = executor.workflow.scheduler
    assert (scheduler.finished, scheduler.failed) == ([], [])
    slurm.jobs(row(1, "COMPLETED"))
    slurm.up()
    soon(lambda: scheduler.finished == [job])
    guard.stop()


def test_looks_must_agree_in_a_row() -> None:
    looks = watchdog.Looks(3)
    running, gone = {"1": "RUNNING"}, {"2": "RUNNING"}
    for states in (gone, gone, running, gone, gone):
        assert looks.take(["1"], states) == {}
    assert looks.take(["1"], gone) == {"1": None}
    # A member of an array stands under the whole until it has a state of its own.
    array = watchdog.Looks(1)
    assert array.take(["7_1", "7_2"], {"7": "PENDING", "7_2": "FAILED"}) == {"7_2": "FAILED"}


HANGING = """
import os, sys, time
folder = os.path.dirname(sys.argv[0])
open(os.path.join(folder, "asking"), "w").close()
while not os.path.exists(os.path.join(folder, "answer")):
    time.sleep(0.02)
"""
"""A query that is under way until it may answer."""


@pytest.mark.parametrize("watched", [False, True])
def test_jobs_are_cancelled_while_they_are_asked_for(
    slurm: Commands, executor: Any, watched: bool
) -> None:
    """Without the watchdog they are not. When that fails, the plug-in has been repaired."""
    executor._submitted_job_clusters = set()
    guard = watch(executor, [], looks=10**6) if watched else None
    slurm.jobs(row(1, "RUNNING"), row(2, "RUNNING"))
    submit(executor, 1)
    submit(executor, 2)
    slurm.replace("squeue", HANGING)
    soon((slurm.folder / "asking").exists)
    # A query that began before comes to its end; the next one is for both jobs, and hangs.
    time.sleep(1)
    soon(lambda: executor.active_jobs == [])
    # As Executor.cancel does, which ends the threads of a whole executor besides.
    with executor.lock:
        active = list(executor.active_jobs)
    executor.cancel_jobs(active)
    (slurm.folder / "answer").touch()
    if guard:
        guard.stop()
    cancelled = " ".join(line for line in slurm.asked if line.startswith("scancel")).split()
    assert {"1", "2"} & set(cancelled) == ({"1", "2"} if watched else set())


def test_a_dead_poller_ends_the_run(slurm: Commands, executor: Any) -> None:
    guard = watch(executor, [])
    executor.check_active_jobs = None  # raises in the thread
    scheduler = executor.workflow.scheduler
    soon(lambda: any("has stopped" in str(error) for error in scheduler.errors))
    guard.stop()


def test_a_submission_that_hangs_is_told_once(
    slurm: Commands, executor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog, "SUBMISSION_SECONDS", 0.2)
    said: list[str] = []
    executor.workflow.scheduler.running.add(Job())
    guard = watch(executor, said)
    soon(lambda: said)
    time.sleep(0.5)
    guard.stop()
    (line,) = said
    assert line.startswith("1 jobs have not been submitted")


def test_an_executor_of_another_make_runs_unwatched() -> None:
    said: list[str] = []
    workflow = SimpleNamespace(scheduler=SimpleNamespace(_executor=SimpleNamespace()))
    watchdog.start(workflow, said.append)
    (line,) = said
    assert line.startswith("No watchdog over SLURM jobs")


# Settings that cannot work


def settings(command: str, first: int) -> SimpleNamespace:
    return SimpleNamespace(status_command=command, init_seconds_before_status_checks=first)


def test_the_profiles_settings_are_fine(slurm: Commands) -> None:
    said: list[str] = []
    watchdog.check_settings(settings("squeue", 20), said.append)
    assert said == []


@pytest.mark.parametrize(
    ("age", "first", "told"),
    [
        ("60 sec", 40, "set slurm-init-seconds-before-status-checks to 20 or less"),
        ("2 sec", 1, "set slurm-status-command: sacct"),
    ],
)
def test_a_memory_too_short_is_refused(slurm: Commands, age: str, first: int, told: str) -> None:
    slurm.config(MinJobAge=age)
    with pytest.raises(UserError, match=told):
        watchdog.check_settings(settings("squeue", first), print)


def test_a_short_memory_is_told(slurm: Commands) -> None:
    slurm.config(MinJobAge="120 sec")
    said: list[str] = []
    watchdog.check_settings(settings("squeue", 40), said.append)
    (line,) = said
    assert "120 s after its end (MinJobAge)" in line


def test_sacct_without_a_database_is_refused(slurm: Commands) -> None:
    with pytest.raises(UserError, match=r"storage is disabled.*set slurm-status-command: squeue"):
        watchdog.check_settings(settings("sacct", 40), print)
    slurm.accounting("")
    said: list[str] = []
    watchdog.check_settings(settings("sacct", 40), said.append)
    (line,) = said
    assert "squeue does not" in line
