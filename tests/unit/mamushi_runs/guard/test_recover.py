"""What a killed run left in SLURM, and the command that settles it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from mamushi.cli import main
from mamushi.errors import UserError
from mamushi_runs.commands import recover as command
from mamushi_runs.guard import session, squeue
from tests.support.slurm_commands import UUID, Commands, job

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder whose main process was killed and left its lock."""
    locks = tmp_path / "run" / ".snakemake" / "locks"
    locks.mkdir(parents=True)
    (locks / "0.output.lock").write_text("results/a.parquet\n")
    # A workflow of one's own, since the lock is removed by Snakemake with it.
    (tmp_path / "Snakefile").write_text("rule all:\n    output: 'results/a.parquet'\n")
    return tmp_path / "run"


@pytest.fixture
def recover(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(command, "SNAKEFILE", folder.parent / "Snakefile")
    return lambda *args: main(["recover", "--directory", str(folder), *args])


def locked(folder: Path) -> bool:
    return any((folder / ".snakemake").glob("locks/*.lock"))


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
    (asked,) = slurm.asked("squeue")
    assert f"--user={os.getuid()}" in asked


def test_all_that_is_left_is_shown_and_nothing_done_without_a_choice(
    slurm: Commands, folder: Path, recover: Any, capsys: Capture
) -> None:
    slurm.jobs(*(job(number, folder) for number in range(1, 8)))
    assert recover() == 1
    said = capsys.readouterr().out
    assert "7 SLURM jobs: 1 RUNNING retrain data_model_1" in said
    assert "; and 2 more" in said and "6 RUNNING" not in said
    assert "--wait" in said and "--cancel" in said
    assert locked(folder) and not slurm.asked("scancel")


def test_cancelled_and_unlocked_by_one_command(slurm: Commands, folder: Path, recover: Any) -> None:
    slurm.jobs(job(1, folder), job(2, folder.parent), job(3, folder, "PENDING"))
    assert recover("--cancel") == 0
    assert slurm.asked("scancel") == ["scancel 1 3"]
    assert not locked(folder)


def test_a_wait_lasts_until_the_last_has_ended(
    slurm: Commands, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through an outage of the controller, which says nothing of the jobs."""
    slurm.jobs(job(1, folder), job(2, folder, "PENDING"))
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        if len(said) == 1:
            slurm.down()
        elif "does not answer" in line:
            slurm.up()
            slurm.jobs(job(2, folder))
        else:
            slurm.jobs(job(9, folder.parent))

    monkeypatch.setattr(command, "_say", say)
    command.settle(folder, squeue.jobs_of(folder), cancelled=False)
    assert said[0].startswith("Waiting for 2 SLURM jobs: 1 RUNNING")
    assert said[1].endswith("still waiting.")
    assert said[2].startswith("Waiting for 1 SLURM job: 2")
    assert said[3:] == ["All jobs of the earlier run have ended."]
    assert not slurm.asked("scancel")


def test_a_living_run_is_left_alone(
    slurm: Commands, folder: Path, recover: Any, capsys: Capture
) -> None:
    held = session.hold(folder)
    assert held is not None
    with held:
        assert recover("--cancel") == 2
    assert f"pid {os.getpid()}" in capsys.readouterr().err
    assert locked(folder)


def test_a_silent_slurm_and_a_refusing_snakemake_are_told(
    slurm: Commands, folder: Path, recover: Any, capsys: Capture
) -> None:
    slurm.down()
    assert recover() == 2
    assert "SLURM does not answer" in capsys.readouterr().err
    slurm.up()
    (folder.parent / "Snakefile").write_text("rule all:\n    outptu: 'a'\n")
    assert recover() == 2
    said = capsys.readouterr().err
    assert "could not remove Snakemake's lock" in said and "--configfile mine.yaml" in said


def refuse(folder: Path, *, slurm: bool) -> list[str]:
    """What a run says that begins in this folder, up to its first job."""
    said: list[str] = []
    with pytest.MonkeyPatch.context() as within:
        within.setattr(session, "SAY", said.append)
        session.refuse_left_jobs(folder, required=slurm)
    return said


def test_left_jobs_stop_a_run(slurm: Commands, folder: Path) -> None:
    assert refuse(folder, slurm=True) == []
    slurm.jobs(job(1, folder))
    for on_slurm in (True, False):
        with pytest.raises(UserError, match=r"left 1 SLURM job: .*r --wait.*r --cancel"):
            refuse(folder, slurm=on_slurm)
    assert not slurm.asked("scancel")


def test_a_silent_slurm_stops_a_run_that_needs_it(slurm: Commands, folder: Path) -> None:
    slurm.down()
    with pytest.raises(UserError, match=r"connect failure.*; start again when `squeue` answers"):
        refuse(folder, slurm=True)
    assert len(slurm.asked("squeue")) == 2  # attempts
    (line,) = refuse(folder, slurm=False)
    assert "would not be noticed" in line
    assert len(slurm.asked("squeue")) == 3  # who needs no SLURM asks once


def test_a_squeue_that_hangs_is_given_up(
    slurm: Commands, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm.replace("squeue", "import time; time.sleep(60)")
    monkeypatch.setattr(squeue, "SECONDS", 0.3)
    begun = time.monotonic()
    with pytest.raises(UserError, match="squeue did not answer within"):
        refuse(folder, slurm=True)
    assert time.monotonic() - begun < 10


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
def test_commands_of_a_killed_local_run_are_found(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("mamushi", "other"):
        (tmp_path / f"{name}.py").write_text("import time; print(flush=True); time.sleep(60)")

    def start(module: str, where: Path, *words: str, **env: str) -> subprocess.Popen[str]:
        kept = {key: value for key, value in os.environ.items() if key != "SLURM_JOB_ID"}
        process = subprocess.Popen(
            [sys.executable, "-m", module, *(words or ("retrain", "--settings", "{}"))],
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
        # For people: perhaps the one that started the run that asks.
        start("mamushi", folder, "rank"),
    ]
    said: list[str] = []

    def say(line: str) -> None:
        """Ends the command, as time would, once a run says that it waits for it."""
        said.append(line)
        assert session.orphans(folder) == [stage.pid]
        stage.kill()
        stage.wait()

    try:
        assert session.orphans(folder) == [stage.pid]
        monkeypatch.setattr(session, "SAY", say)
        session.wait_for_orphans(folder)
    finally:
        for process in [stage, *others]:
            process.kill()
            process.wait()
    assert session.orphans(folder) == []
    assert len(said) == 1 and str(stage.pid) in said[0]
