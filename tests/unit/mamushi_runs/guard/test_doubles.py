"""What an earlier run left behind, and a second run in the same folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mamushi.errors import UserError
from mamushi_runs.guard import doubles, squeue
from tests.support.slurm_commands import UUID, Commands, install, job

ROOT = Path(__file__).parents[4]


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    monkeypatch.setenv("MAMUSHI_POLL_SECONDS", "0.05")
    monkeypatch.delenv(doubles.CHOICE, raising=False)
    monkeypatch.setattr(squeue.ask, "__kwdefaults__", {"attempts": 2, "pause": 0.01})
    return install(tmp_path / "bin", monkeypatch)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    return tmp_path / "run"


def settle(folder: Path, *, required: bool = True) -> list[str]:
    said: list[str] = []
    doubles.settle(folder, required=required, say=said.append)
    return said


# Which jobs are those of a folder


def test_only_snakemakes_jobs_of_this_folder_count(slurm: Commands, folder: Path) -> None:
    other = folder.parent / "other"
    link = folder.parent / "link"
    link.symlink_to(folder)
    slurm.jobs(
        job(1, folder),
        job(2, other),
        job(3, link, "PENDING"),
        ("4", "RUNNING", "train.sh", "(null)", folder),
        ("5", "RUNNING", f"lab_{UUID}", "(null)", folder),
        ("6", "RUNNING", f"{UUID}x", "rule_retrain", folder),
    )
    found = squeue.jobs_of(folder)
    assert [(each.id, each.state, each.rule) for each in found] == [
        ("1", "RUNNING", "retrain data_model_1"),
        ("3", "PENDING", "retrain data_model_3"),
        ("5", "RUNNING", ""),
    ]
    (asked,) = slurm.asked
    assert f"--user={os.getuid()}" in asked


def test_an_empty_queue_stops_nothing(slurm: Commands, folder: Path) -> None:
    assert settle(folder) == []


def test_a_machine_without_slurm_asks_nothing(
    monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    monkeypatch.setenv("PATH", str(folder))
    assert settle(folder) == []


# The policies


def test_left_jobs_stop_a_run_until_something_is_chosen(slurm: Commands, folder: Path) -> None:
    slurm.jobs(*(job(number, folder) for number in range(1, 8)))
    with pytest.raises(UserError) as caught:
        settle(folder)
    text = str(caught.value)
    assert "7 SLURM jobs of an earlier run (7 running)" in text
    assert "1 RUNNING retrain data_model_1" in text and "; and 2 more" in text
    assert "6 RUNNING" not in text
    for name in ("wait", "adopt", "cancel"):
        assert f"MAMUSHI_LEFTOVER={name}" in text
    assert not any(line.startswith("scancel") for line in slurm.asked)


def test_an_unknown_choice_is_told_also_when_nothing_is_left(
    slurm: Commands, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(doubles.CHOICE, "kill")
    with pytest.raises(UserError, match=r"'kill' is no way .* wait, adopt, cancel"):
        settle(folder)


def test_cancel_ends_these_jobs_and_no_others(
    slurm: Commands, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm.jobs(job(1, folder), job(2, folder.parent), job(3, folder, "PENDING"))
    monkeypatch.setenv(doubles.CHOICE, "cancel")
    said = settle(folder)
    assert [line for line in slurm.asked if line.startswith("scancel")] == ["scancel 1 3"]
    assert said[-1] == "All jobs of the earlier run have ended."


def test_adopt_goes_on_at_once(
    slurm: Commands, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm.jobs(job(1, folder))
    monkeypatch.setenv(doubles.CHOICE, "adopt")
    said = settle(folder)
    assert said[0].startswith("1 SLURM job of an earlier run (1 running)")
    assert len(slurm.asked) == 1


def test_wait_goes_on_when_the_last_has_ended(
    slurm: Commands, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through an outage of the controller, which says nothing of the jobs."""
    slurm.jobs(job(1, folder), job(2, folder, "PENDING"))
    monkeypatch.setenv(doubles.CHOICE, "wait")
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        waits = [each for each in said if each.startswith("Waiting")]
        if len(said) == 2:
            slurm.down()
        elif "does not answer" in line:
            slurm.up()
            slurm.jobs(job(2, folder))
        elif len(waits) == 2:
            slurm.jobs(job(9, folder.parent))

    doubles.settle(folder, required=True, say=say)
    assert "2 SLURM jobs of an earlier run (1 running, 1 pending)" in said[0]
    assert "does not answer" in said[2] and said[2].endswith("still waiting.")
    assert said[3].startswith("Waiting for 1 SLURM job of an earlier run (1 running)")
    assert said[4:] == ["All jobs of the earlier run have ended."]


def test_a_wait_can_be_stopped(
    slurm: Commands, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm.jobs(job(1, folder))
    monkeypatch.setenv(doubles.CHOICE, "wait")
    with pytest.raises(UserError, match="stopped while it waited"):
        doubles.settle(folder, required=True, say=lambda _: None, stop=lambda: True)


# SLURM that does not answer


def test_a_silent_slurm_stops_a_run_that_needs_it(slurm: Commands, folder: Path) -> None:
    slurm.down()
    with pytest.raises(UserError, match=r"connect failure.*; start again when `squeue` answers"):
        settle(folder)
    assert len(slurm.asked) == 2  # attempts
    (line,) = settle(folder, required=False)
    assert "would not be noticed" in line
    assert len(slurm.asked) == 3  # who needs no SLURM asks once


def test_a_squeue_that_hangs_is_given_up(
    slurm: Commands, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm.replace("squeue", "import time; time.sleep(60)")
    monkeypatch.setattr(squeue, "SECONDS", 0.3)
    begun = time.monotonic()
    with pytest.raises(UserError, match="squeue did not answer within"):
        settle(folder)
    assert time.monotonic() - begun < 10


# The one main process

HOLDER = """
import sys, time
from mamushi_runs.guard import doubles
held = doubles.hold(sys.argv[1], print)
if len(sys.argv) > 2:
    held.release(settled=True)
print("held", flush=True)
time.sleep(60)
"""


def holder(folder: Path, *args: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, folder, *args],
        env={**os.environ, "PYTHONPATH": str(ROOT / "workflow")},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    return process


def test_a_second_main_process_is_refused_while_the_first_lives(folder: Path) -> None:
    process = holder(folder)
    try:
        with pytest.raises(UserError, match=f"another run works in this folder .*{process.pid} on"):
            doubles.hold(folder, print)
        living = doubles.main_process(folder)
        assert isinstance(living, doubles.Main) and living.pid == process.pid
    finally:
        process.kill()
        process.wait()
    assert doubles.main_process(folder) is None
    held = doubles.hold(folder, print)
    assert held is not None and held.killed is not None
    assert abs(held.killed - time.time()) < 60
    held.release(settled=True)


def test_a_record_that_outlives_the_lock_is_no_living_process(folder: Path) -> None:
    process = holder(folder, "release")
    try:
        assert doubles.main_process(folder) is None
        held = doubles.hold(folder, print)
        assert held is not None and held.killed is None
        held.release(settled=True)
    finally:
        process.kill()
        process.wait()


def test_what_a_killed_run_began_is_remembered_until_a_run_settles_it(folder: Path) -> None:
    process = holder(folder)
    process.kill()
    process.wait()
    begun = json.loads((folder / doubles.RECORD).read_text())["begun"]
    for settled, expected in [(False, begun), (False, begun), (True, begun), (True, None)]:
        held = doubles.hold(folder, print)
        assert held is not None and held.killed == expected
        held.release(settled=settled)


def test_a_damaged_record_is_no_obstacle(folder: Path) -> None:
    (folder / ".snakemake").mkdir()
    (folder / doubles.RECORD).write_text('{"host": ')
    held = doubles.hold(folder, print)
    assert held is not None and held.killed is None


def test_children_do_not_keep_the_lock(folder: Path) -> None:
    held = doubles.hold(folder, print)
    assert held is not None
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        held.release(settled=True)
        assert doubles.main_process(folder) is None
    finally:
        child.kill()
        child.wait()


# Commands of a killed local run


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
def test_commands_of_a_killed_local_run_are_found(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "mamushi.py").write_text("import time; print(flush=True); time.sleep(60)")
    (tmp_path / "other.py").write_text("import time; print(flush=True); time.sleep(60)")

    def start(module: str, where: Path, **env: str) -> subprocess.Popen[str]:
        kept = {key: value for key, value in os.environ.items() if key != "SLURM_JOB_ID"}
        process = subprocess.Popen(
            [sys.executable, "-m", module, "retrain"],
            cwd=where,
            env={**kept, "PYTHONPATH": str(tmp_path), **env},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None and process.stdout.readline()
        return process

    stage = start("mamushi", folder)
    others = [
        start("other", folder),
        start("mamushi", tmp_path),
        start("mamushi", folder, SLURM_JOB_ID="7"),
    ]
    try:
        assert doubles.local_orphans(folder) == [stage.pid]
    finally:
        for process in [stage, *others]:
            process.kill()
            process.wait()
    assert doubles.local_orphans(folder) == []
