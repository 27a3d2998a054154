"""Faults of a cluster while models train. After each the grid is complete, and every result is bit
for bit that of an undisturbed run on a CPU.

Faults of nodes, daemons and disks need the right to cause them: they are tested on the SLURM of one
machine that a test suite started for itself, and skipped elsewhere. All of it is run with
MAMUSHI_FAULTS=all; without it, what covers most in a few minutes.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import cluster
from tests.support.scene import Scene, patient, saved


def control(*words: str) -> None:
    subprocess.run(["scontrol", *words], check=True, capture_output=True, timeout=60)


def times(scene: Scene, job: cluster.Queued) -> list[float]:
    found = saved(scene.state(job))
    assert found
    return found


def state_of(scene: Scene, job: cluster.Queued) -> str:
    found = {each.id: each.state for each in cluster.queue(scene.folder, ended=True)}
    return found.get(job.id, "")


def at_once(scene: Scene, job: cluster.Queued) -> None:
    """Start a requeued job now: SLURM holds it back for two minutes."""
    cluster.wait_for(lambda: state_of(scene, job) == "PENDING", 180)
    with contextlib.suppress(subprocess.CalledProcessError):
        control("update", f"JobId={job.id}", "StartTime=now")


@pytest.fixture
def own_cluster() -> Path:
    """The state folder of a SLURM that this machine runs for tests alone; root can break it."""
    root = Path(os.environ.get("FAKE_SLURM_ROOT", "/var/lib/fake-slurm"))
    if os.getuid() != 0 or not (root / "run" / "slurmctld.pid").exists():
        pytest.skip("needs root and a SLURM of this machine's own, which may be broken")
    return root


# Jobs ---------------------------------------------------------------------------------------------


def test_a_cancelled_job_is_tried_again_from_its_checkpoint(disturbed: Scene) -> None:
    main = disturbed.start()
    job = disturbed.training()
    subprocess.run(["scancel", job.id], check=True)
    cluster.wait_for(lambda: state_of(disturbed, job) == "CANCELLED", 240)
    before = times(disturbed, job)
    disturbed.finish(main)
    assert f"SLURM-job '{job.id}' failed, SLURM status is: 'CANCELLED'" in disturbed.said
    assert disturbed.continued(job, before)


@patient
def test_a_requeued_job_goes_on_from_its_checkpoint(disturbed: Scene) -> None:
    """As after a preemption."""
    main = disturbed.start()
    job = disturbed.training()
    control("requeue", job.id)
    at_once(disturbed, job)
    before = times(disturbed, job)
    disturbed.finish(main)
    assert disturbed.continued(job, before)
    assert "Error in rule" not in disturbed.said  # no retry was spent


def test_a_job_killed_in_the_middle_of_a_checkpoint(disturbed: Scene, own_cluster: Path) -> None:
    """The process is killed with -9 while the part of a checkpoint lies beside the whole one."""
    main = disturbed.start()
    job = disturbed.training()
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
    before = times(disturbed, job)
    disturbed.finish(main)
    assert disturbed.continued(job, before)
    assert not list(state.parent.glob(".*.part"))


@patient
def test_a_job_over_its_time_limit_gets_more_and_goes_on(
    disturbed: Scene, own_cluster: Path
) -> None:
    """The first attempt has a minute, and its training is held up for that long."""
    # Without an early warning, which a minute is too short for.
    limits = {"runtime": "10 * attempt - 9", "slurm_extra": "''"}
    disturbed.settings = {"set-resources": {"retrain": limits}}
    main = disturbed.start()
    job = disturbed.training()
    (pid,) = [
        pid
        for pid in processes("mamushi", "retrain")
        if str(disturbed.state(job).relative_to(disturbed.folder)) in command_line(pid)
    ]
    os.kill(pid, signal.SIGSTOP)
    cluster.wait_for(lambda: state_of(disturbed, job) == "TIMEOUT", 300)
    before = times(disturbed, job)
    disturbed.finish(main)
    assert disturbed.continued(job, before)
    asked = {each.minutes for each in cluster.settled(disturbed.folder) if each.rule == "retrain"}
    assert asked == {1, 11}


def processes(*words: str) -> list[int]:
    """The processes of this machine with these words in their command line, one after another."""
    return [
        int(path.name)
        for path in Path("/proc").iterdir()
        if path.name.isdigit() and "-m\0" + "\0".join(words) + "\0" in command_line(int(path.name))
    ]


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""


# Nodes, daemons, disks ----------------------------------------------------------------------------


@patient
def test_a_node_that_goes_down(disturbed: Scene, own_cluster: Path) -> None:
    """SLURM takes the node for lost, and all that ran on it is killed, as by a loss of power."""
    main = disturbed.start()
    job = disturbed.training()
    lost = [each for each in cluster.queue(disturbed.folder) if each.state == "RUNNING"]
    control("update", f"NodeName={job.node}", "State=DOWN", "Reason=test")
    try:
        cluster.wait_for(lambda: state_of(disturbed, job) != "RUNNING", 180)
        cluster.wait_for(lambda: not [kill_all_of(each) for each in lost if processes_of(each)], 60)
        before = times(disturbed, job)
    finally:
        cluster.wait_for(lambda: resumed(job.node), 120)
    for each in lost:
        at_once(disturbed, each)
    disturbed.finish(main)
    assert disturbed.continued(job, before)


def resumed(node: str) -> bool:
    """Whether a node takes jobs; asks SLURM for it where it does not come back by itself."""
    asked = ["sinfo", "--noheader", f"--nodes={node}", "--format=%T"]
    states = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.split()
    if states and all(state in ("idle", "mixed", "allocated", "completing") for state in states):
        return True
    with contextlib.suppress(subprocess.CalledProcessError):
        control("update", f"NodeName={node}", "State=RESUME")
    return False


def processes_of(job: cluster.Queued) -> list[int]:
    """The processes of a job, by what SLURM put into their environment."""
    mark = b"\0SLURM_JOB_ID=" + job.id.encode() + b"\0"
    found = []
    for path in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if path.name.isdigit() and mark in b"\0" + (path / "environ").read_bytes() + b"\0":
                found.append(int(path.name))
    return found


def kill_all_of(job: cluster.Queued) -> None:
    """Kill the processes of a job with -9, and those that watch over them."""
    for pid in [*processes_of(job), *daemons_of(job)]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def daemons_of(job: cluster.Queued) -> list[int]:
    """The job's slurmstepd processes, which name it in their title."""
    return [
        int(path.name)
        for path in Path("/proc").iterdir()
        if path.name.isdigit()
        and command_line(int(path.name)).startswith(f"slurmstepd: [{job.id}.")
    ]


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
    cluster.wait_for(lambda: not Path(f"/proc/{pid}").exists(), 240)
    try:
        yield
    finally:
        # It carries this variable as a mark of whose it is.
        subprocess.run(["slurmctld"], check=True, env={**os.environ, "FAKE_SLURM_ROOT": str(root)})
        cluster.wait_for(lambda: cluster.missing() is None, 180)


@patient
def test_a_disk_that_is_full_once(disturbed: Scene, own_cluster: Path) -> None:
    """The first attempts fail; with space again, the retries complete the grid."""
    results = disturbed.folder / "results"
    with small_disk(results, megabytes=16):
        filler = results / "logs" / "filler"
        free = shutil.disk_usage(results).free
        with filler.open("wb") as handle:
            os.posix_fallocate(handle.fileno(), 0, free - 2**16)
        main = disturbed.start()
        try:
            cluster.wait_for(lambda: "Trying to restart job" in disturbed.said, 240)
        finally:
            filler.unlink()
        disturbed.finish(main)
        assert "no space left" in disturbed.said or "No space left" in disturbed.said


@contextlib.contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[None]:
    """Put a file system of that size under a folder and what is in it."""
    aside = folder.with_name(f"{folder.name}.aside")
    folder.rename(aside)
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        folder.rmdir()
        aside.rename(folder)
        pytest.skip("no right to mount a small file system")
    try:
        shutil.copytree(aside, folder, dirs_exist_ok=True)
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


# Status checks ------------------------------------------------------------------------------------

# Between Snakemake and the real squeue: it fails, or hides a job, as long as a file says so.
SQUEUE = """#!/bin/sh
if [ -e {folder}/fails ]; then touch {folder}/failed
  echo "slurm_load_jobs error: Socket timed out" >&2; exit 1; fi
if [ -e {folder}/hidden ]; then {squeue} "$@" | grep -v "^$(cat {folder}/hidden)"; else
exec {squeue} "$@"; fi
"""


@pytest.fixture
def between(disturbed: Scene) -> Path:
    """A folder with such a squeue, to be put in front of the search path."""
    folder = disturbed.folder / "between"
    folder.mkdir()
    script = folder / "squeue"
    script.write_text(SQUEUE.format(folder=folder, squeue=shutil.which("squeue")))
    script.chmod(0o755)
    return folder


@patient
def test_status_checks_that_fail_for_a_while(disturbed: Scene, between: Path) -> None:
    """With few attempts, the plug-in forgets its jobs then, and waits for ever."""
    main = disturbed.start(env={"PATH": f"{between}:{os.environ['PATH']}"})
    disturbed.training()
    (between / "fails").touch()
    cluster.wait_for((between / "failed").exists, 240)
    time.sleep(15)
    (between / "fails").unlink()
    disturbed.finish(main)
    assert "Error in rule" not in disturbed.said


def test_a_run_that_waits_in_vain_is_interrupted_and_goes_on(
    disturbed: Scene, between: Path
) -> None:
    """SLURM has forgotten a job, as when it ended during an outage that was longer than MinJobAge;
    the plug-in takes it for one that runs. It is interrupted while status checks fail, when its
    list of jobs is empty."""
    main = disturbed.start(env={"PATH": f"{between}:{os.environ['PATH']}"})
    job = disturbed.training()
    (between / "hidden").write_text(job.id)
    cluster.wait_for(lambda: state_of(disturbed, job) == "COMPLETED", 240)
    (between / "fails").touch()
    cluster.wait_for((between / "failed").exists, 240)
    main.send_signal(signal.SIGINT)
    time.sleep(1)
    (between / "fails").unlink()
    assert disturbed.end(main) != 0
    cluster.wait_for(lambda: not cluster.queue(disturbed.folder), 60)
    (between / "hidden").unlink()
    disturbed.finish(disturbed.start())
    assert "finished without it (retrain): taken over" in disturbed.said


# Submission ---------------------------------------------------------------------------------------


def test_a_limit_on_submitted_jobs_is_waited_out(
    disturbed: Scene, own_cluster: Path, slurm: cluster.Cluster
) -> None:
    """The second job waits until the first has ended, and no attempt is spent."""
    config = subprocess.check_output(["scontrol", "show", "config"], text=True)
    if not re.search(r"AccountingStorageEnforce\s*=.*limits", config):
        pytest.skip("this SLURM enforces no limits")
    account = slurm.account or os.environ.get("FAKE_SLURM_ACCOUNT", "proj")
    limited = ["sacctmgr", "--immediate", "modify", "account", account, "set"]
    subprocess.run([*limited, "GrpSubmitJobs=1"], check=True, capture_output=True)
    try:
        main = disturbed.start()
        disturbed.finish(main)
    finally:
        subprocess.run([*limited, "GrpSubmitJobs=-1"], check=True, capture_output=True)
    assert "Error in rule" not in disturbed.said
    first, second = (job for job in cluster.settled(disturbed.folder) if job.rule == "retrain")
    assert first.ended is not None and second.submitted is not None
    assert first.ended <= second.submitted
