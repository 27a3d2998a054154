"""What a killed run left, and the run that begins after it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mamushi.errors import UserError
from mamushi_runs.guard import session, squeue
from tests.support.slurm_commands import UUID, Commands, job


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder whose main process was killed."""
    (tmp_path / "run").mkdir()
    return tmp_path / "run"


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


def refuse(folder: Path, *, slurm: bool) -> list[str]:
    """What a run says that begins in this folder, up to its first job."""
    said: list[str] = []
    with pytest.MonkeyPatch.context() as within:
        within.setattr(session, "SAY", said.append)
        session.refuse_left_jobs(folder, required=slurm)
    return said


def test_left_jobs_stop_a_run(slurm: Commands, folder: Path) -> None:
    assert refuse(folder, slurm=True) == []
    slurm.jobs(*(job(number, folder) for number in range(1, 8)))
    for on_slurm in (True, False):
        with pytest.raises(UserError) as refused:
            refuse(folder, slurm=on_slurm)
        said = str(refused.value)
        assert "left 7 SLURM jobs: 1 RUNNING retrain data_model_1" in said
        assert "; and 2 more" in said and "6 RUNNING" not in said
        assert f"end them with `scancel --name={UUID}`, after which" in said
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
