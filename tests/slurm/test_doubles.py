"""After a main process was killed: its SLURM jobs are noticed, and nothing is written twice."""

import contextlib
import re
import signal
import subprocess
from collections.abc import Iterator

import pytest

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


def test_a_restart_is_refused_until_its_jobs_have_ended_and_takes_over(disturbed: Scene) -> None:
    killed(disturbed)
    left = cluster.queue(disturbed.folder)
    assert len(left) == submitted(disturbed) == 2
    with held_up(left):
        # First Snakemake's own lock, which is all that it has.
        assert disturbed.end(disturbed.start()) != 0
        assert "Directory cannot be locked" in disturbed.said
        assert disturbed.end(disturbed.start("--unlock")) == 0, disturbed.said
        assert disturbed.end(disturbed.start()) != 0
        assert "an earlier run left 2 SLURM jobs" in disturbed.said
        assert all(f"{job.id} SUSPENDED retrain" in disturbed.said for job in left)
        # A dry run is none of its business.
        assert disturbed.end(disturbed.start("--dry-run")) == 0
        shown = disturbed.recover()
        assert shown.returncode == 1 and "Choose what becomes of the jobs" in shown.stdout
        assert {job.id for job in cluster.queue(disturbed.folder)} == {job.id for job in left}
    waited = disturbed.recover("--wait")
    assert waited.returncode == 0, waited.stdout
    assert "All jobs of the earlier run have ended." in waited.stdout
    # Their jobs took the marks off, and Snakemake would take the files as they are.
    marks = disturbed.folder / ".snakemake" / "incomplete"
    assert not [path for path in marks.rglob("*") if path.is_file()]
    made = {path: path.stat().st_mtime_ns for path in disturbed.retrained()}
    disturbed.finish(disturbed.start())
    assert "2 jobs of an earlier run finished without it (retrain): taken over" in disturbed.said
    assert submitted(disturbed) == 2 and made == {path: path.stat().st_mtime_ns for path in made}
    disturbed.finish(disturbed.start())
    assert disturbed.said.count("finished without it") == 1
    assert "Nothing to be done" in disturbed.said


@patient
def test_cancelled_by_recover_and_continued_from_the_checkpoint(disturbed: Scene) -> None:
    job = killed(disturbed)
    settled = disturbed.recover("--cancel")
    assert settled.returncode == 0, settled.stdout
    assert "lock is removed" in settled.stdout and not cluster.queue(disturbed.folder)
    before = saved_times(disturbed, job)
    disturbed.finish(disturbed.start())
    assert disturbed.continued(job, before)


@patient
def test_a_second_main_process_is_refused_also_after_unlocking(disturbed: Scene) -> None:
    first = disturbed.start()
    disturbed.training(steps=1)
    with held_up(cluster.queue(disturbed.folder)):
        assert disturbed.end(disturbed.start("--unlock")) == 0, disturbed.said
        assert disturbed.end(disturbed.start()) != 0
        refused = disturbed.recover("--cancel")
        assert refused.returncode == 2
        for said in (disturbed.said, refused.stdout):
            assert re.search(rf"another run works in this folder \(\S+ pid {first.pid}\)", said)
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
