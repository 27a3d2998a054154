"""Faults of a cluster while models train. After each the grid is complete, and every result is bit
for bit that of an undisturbed run on a CPU.

Some need the right to cause them: they are tested on the SLURM of one machine that a test suite
started for itself, and skipped elsewhere.
"""

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import cluster
from tests.support.processes import until
from tests.support.scene import Scene


def state_of(scene: Scene, job: cluster.Job) -> str:
    found = {each.id: each.state for each in cluster.queue(scene.folder, ended=True)}
    return found.get(job.id, "")


@pytest.fixture
def own_cluster() -> Path:
    """The state folder of a SLURM that this machine runs for tests alone; root can break it."""
    root = Path(os.environ.get("FAKE_SLURM_ROOT", "/var/lib/fake-slurm"))
    if os.getuid() != 0 or not (root / "run" / "slurmctld.pid").exists():
        pytest.skip("needs root and a SLURM of this machine's own, which may be broken")
    return root


# Jobs ---------------------------------------------------------------------------------------------


def test_jobs_that_are_cancelled_or_killed_go_on_from_their_checkpoints(
    disturbed: Scene, own_cluster: Path
) -> None:
    """Of two, one is cancelled; the other is killed with -9 while the part of a checkpoint lies
    beside the whole one."""
    main = disturbed.start()
    cancelled = disturbed.training()
    subprocess.run(["scancel", cancelled.id], check=True)
    until(lambda: state_of(disturbed, cancelled) == "CANCELLED", 240, every=0.5)
    before = {cancelled.wildcards: (cancelled, disturbed.saved_times(cancelled))}
    job = disturbed.training(steps=6)
    state = disturbed.state(job)
    pattern = re.compile(rf"\.{re.escape(state.name)}\.(.+)-(\d+)\.part")
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline:
        match = next(filter(None, map(pattern.fullmatch, os.listdir(state.parent))), None)
        if match is None:
            continue
        pid = int(match.group(2))
        # Stopped first, so that the part is seen for sure before the process goes.
        os.kill(pid, signal.SIGSTOP)
        if (state.parent / match.group()).exists():
            os.kill(pid, signal.SIGKILL)
            break
        os.kill(pid, signal.SIGCONT)
    else:
        raise AssertionError("no save was caught in the middle")
    # By its model, since the one that was cancelled may train again already.
    before[job.wildcards] = job, disturbed.saved_times(job)
    disturbed.finish(main)
    assert re.search(rf"JOB {cancelled.id} ON \S+ CANCELLED", disturbed.said)
    assert all(disturbed.continued(*each) for each in before.values())
    assert not list(state.parent.glob(".*.part"))


# The controller -----------------------------------------------------------------------------------


def test_a_controller_that_restarts(disturbed: Scene, own_cluster: Path) -> None:
    """For longer than the plug-in keeps jobs in mind whose state it cannot learn."""
    main = disturbed.start()
    disturbed.training()
    with no_controller(own_cluster):
        time.sleep(15)
    disturbed.finish(main)


@contextlib.contextmanager
def no_controller(root: Path) -> Iterator[None]:
    """End slurmctld for the time of the block."""
    pid = int((root / "run" / "slurmctld.pid").read_text())
    os.kill(pid, signal.SIGTERM)
    until(lambda: not Path(f"/proc/{pid}").exists(), 240, every=0.5)
    try:
        yield
    finally:
        # It carries this variable as a mark of whose it is.
        subprocess.run(["slurmctld"], check=True, env={**os.environ, "FAKE_SLURM_ROOT": str(root)})
        until(lambda: cluster.missing() is None, 180, every=0.5)


# The main process ---------------------------------------------------------------------------------


def test_a_run_that_is_killed_goes_on_once_its_jobs_are_ended(disturbed: Scene) -> None:
    """From their checkpoints."""
    disturbed.start()
    job = disturbed.training()
    disturbed.kill()
    assert cluster.queue(disturbed.folder)
    cluster.cancel(disturbed.folder)
    until(lambda: not cluster.queue(disturbed.folder), 240, every=0.5)
    before = disturbed.saved_times(job)
    assert disturbed.start("--unlock").wait(600) == 0, disturbed.said
    disturbed.finish(disturbed.start())
    assert disturbed.continued(job, before)
    disturbed.finish(disturbed.start())
    assert "Nothing to be done" in disturbed.said


def test_a_run_that_is_interrupted_leaves_nothing_behind_and_goes_on(disturbed: Scene) -> None:
    """As by Ctrl-C: its jobs are cancelled."""
    main = disturbed.start()
    job = disturbed.training()
    main.send_signal(signal.SIGINT)
    assert main.wait(600) != 0
    until(lambda: not cluster.queue(disturbed.folder), 240, every=0.5)
    before = disturbed.saved_times(job)
    disturbed.finish(disturbed.start())
    assert disturbed.continued(job, before)
