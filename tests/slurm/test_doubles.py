"""After a main process was killed: its SLURM jobs are noticed, and nothing is written twice."""

from __future__ import annotations

import contextlib
import signal
import subprocess
from collections.abc import Iterator

import pytest

from mamushi_runs.guard.doubles import CHOICE
from tests.support import cluster
from tests.support.scene import Scene, patient, saved


def submitted(scene: Scene) -> int:
    return scene.said.count("has been submitted with SLURM jobid")


def killed(scene: Scene) -> cluster.Queued:
    """Start the run, and kill its main process while a model is trained."""
    scene.start()
    job = scene.training()
    scene.kill()
    return job


@contextlib.contextmanager
def held_up(jobs: list[cluster.Queued]) -> Iterator[None]:
    """Suspend jobs for the time of the block, so that none of them ends meanwhile."""
    for job in jobs:
        done = subprocess.run(["scontrol", "suspend", job.id], check=False, capture_output=True)
        if done.returncode:
            pytest.skip(f"no right to suspend a job: {done.stderr.decode().strip()}")
    try:
        yield
    finally:
        for job in jobs:
            subprocess.run(["scontrol", "resume", job.id], check=False, capture_output=True)


def saved_times(scene: Scene, job: cluster.Queued) -> list[float]:
    times = saved(scene.state(job))
    assert times
    return times


def unlock(scene: Scene) -> None:
    assert scene.end(scene.start("--unlock")) == 0, scene.said


def test_a_restart_is_refused_until_one_chooses_and_then_waits(disturbed: Scene) -> None:
    killed(disturbed)
    left = cluster.queue(disturbed.folder)
    assert len(left) == submitted(disturbed) == 2
    with held_up(left):
        # First Snakemake's own lock, which is all that it has.
        assert disturbed.end(disturbed.start()) != 0
        assert "Directory cannot be locked" in disturbed.said
        unlock(disturbed)
        assert disturbed.end(disturbed.start()) != 0
        assert "2 SLURM jobs of an earlier run" in disturbed.said
        assert all(f"{job.id} SUSPENDED retrain" in disturbed.said for job in left)
        assert all(f"{CHOICE}={name}" in disturbed.said for name in ("wait", "adopt", "cancel"))
        # A dry run is none of its business.
        assert disturbed.end(disturbed.start("--dry-run")) == 0
        assert submitted(disturbed) == 2
        waiting = disturbed.start(env={CHOICE: "wait"})
        cluster.wait_for(lambda: "Waiting for 2 SLURM jobs" in disturbed.said, 180)
        assert submitted(disturbed) == 2
    disturbed.finish(waiting)
    assert "All jobs of the earlier run have ended." in disturbed.said


@patient
def test_cancelled_by_recover_and_continued_from_the_checkpoint(disturbed: Scene) -> None:
    job = killed(disturbed)
    left = {each.id for each in cluster.queue(disturbed.folder)}
    shown = disturbed.recover()
    assert shown.returncode == 1 and "Choose what becomes of the jobs" in shown.stdout
    assert {each.id for each in cluster.queue(disturbed.folder)} == left
    settled = disturbed.recover("--cancel")
    assert settled.returncode == 0, settled.stdout
    assert "lock is removed" in settled.stdout and not cluster.queue(disturbed.folder)
    before = saved_times(disturbed, job)
    disturbed.finish(disturbed.start())
    assert disturbed.continued(job, before)


def test_adopted_jobs_are_not_run_twice(disturbed: Scene) -> None:
    """The restarted run's jobs wait for the living ones, and take over what they finish."""
    job = killed(disturbed)
    with held_up(cluster.queue(disturbed.folder)):
        before = saved_times(disturbed, job)
        unlock(disturbed)
        main = disturbed.start(env={CHOICE: "adopt"})
        cluster.wait_for(lambda: submitted(disturbed) >= 4, 180)
    disturbed.finish(main)
    assert "Going on: jobs for the same files wait for them" in disturbed.said
    assert disturbed.continued(job, before)


@patient
def test_jobs_that_finish_alone_are_recorded_by_the_next_run(disturbed: Scene) -> None:
    """Else a later change of their settings would run nothing again."""
    killed(disturbed)
    waited = disturbed.recover("--wait")
    assert waited.returncode == 0, waited.stdout
    # Their jobs took the marks off, and Snakemake would take the files as they are.
    marks = disturbed.folder / ".snakemake" / "incomplete"
    assert not [path for path in marks.rglob("*") if path.is_file()]
    disturbed.finish(disturbed.start())
    assert "2 of its jobs finished without it (retrain)" in disturbed.said
    again = disturbed.start()
    disturbed.finish(again)
    assert disturbed.said.count("finished without it") == 1
    assert "Nothing to be done" in disturbed.said


@patient
def test_a_second_main_process_is_refused_also_after_unlocking(disturbed: Scene) -> None:
    first = disturbed.start()
    disturbed.training(steps=1)
    with held_up(cluster.queue(disturbed.folder)):
        unlock(disturbed)
        assert disturbed.end(disturbed.start()) != 0
        assert f"another run works in this folder (process {first.pid} on" in disturbed.said
        refused = disturbed.recover("--cancel")
        assert refused.returncode == 2 and "a run lives here" in refused.stdout
    disturbed.finish(first)
    assert submitted(disturbed) <= 4  # its two retrainings, and figures where they are jobs


@patient
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda each: each.name)
def test_a_run_that_is_asked_to_end_leaves_nothing_behind(
    disturbed: Scene, number: signal.Signals
) -> None:
    """SIGINT cancels its jobs, SIGTERM lets them finish; the same command goes on."""
    main = disturbed.start()
    job = disturbed.training()
    main.send_signal(number)
    assert disturbed.end(main) != 0
    cluster.wait_for(lambda: not cluster.queue(disturbed.folder), 240)
    before = saved_times(disturbed, job) if number == signal.SIGINT else None
    disturbed.finish(disturbed.start())
    assert before is None or disturbed.continued(job, before)
