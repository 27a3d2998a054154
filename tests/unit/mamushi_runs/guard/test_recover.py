"""The command after a crash, and what a restart does with results that nobody recorded."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mamushi_runs.__main__ import COMMANDS, main
from mamushi_runs.guard import doubles, squeue, unrecorded
from tests.support.slurm_commands import Commands, install, job

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    monkeypatch.setenv("MAMUSHI_POLL_SECONDS", "0.05")
    monkeypatch.setattr(squeue.ask, "__kwdefaults__", {"attempts": 1, "pause": 0.0})
    return install(tmp_path / "bin", monkeypatch)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder whose main process was killed: a lock, and a mark on an output."""
    marks = tmp_path / "run" / ".snakemake" / "incomplete"
    locks = tmp_path / "run" / ".snakemake" / "locks"
    for new in (marks, locks):
        new.mkdir(parents=True)
    (locks / "0.output.lock").write_text("results/a.parquet\n")
    name = base64.urlsafe_b64encode(b"results/a.parquet").decode()
    (marks / name).write_text("{}")
    # Longer than a file's name may be: cut as Snakemake cuts it.
    long = base64.urlsafe_b64encode(b"results/" + 300 * b"b").decode()
    (marks / f"@{long[:254]}").mkdir()
    (marks / f"@{long[:254]}" / long[254:]).write_text("{}")
    # A workflow of one's own, since the lock is removed by Snakemake with it.
    (tmp_path / "Snakefile").write_text("rule all:\n    output: 'results/a.parquet'\n")
    return tmp_path / "run"


@pytest.fixture
def recover(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    module = __import__("mamushi_runs.guard.recover", fromlist=["recover"])
    monkeypatch.setattr(module, "SNAKEFILE", folder.parent / "Snakefile")
    return lambda *args: main(["recover", "--directory", str(folder), *args])


def test_every_subcommand_is_listed(capsys: Capture) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    said = capsys.readouterr().out
    assert COMMANDS and all(name in said for name in COMMANDS)


def test_all_that_is_left_is_shown_and_nothing_done_without_a_choice(
    slurm: Commands, folder: Path, recover: Any, capsys: Capture
) -> None:
    slurm.jobs(job(1, folder), job(2, folder, "PENDING"))
    assert recover() == 1
    said = capsys.readouterr().out
    assert "2 SLURM jobs of an earlier run (1 running, 1 pending)" in said
    assert "Snakemake's lock     stale" in said
    assert "results/a.parquet" in said and "results/bbb" in said
    assert all(f"--{name}" in said for name in doubles.POLICIES)
    assert (folder / ".snakemake/locks/0.output.lock").exists()
    assert not any(line.startswith("scancel") for line in slurm.asked)


def test_with_nothing_left_the_lock_goes(
    slurm: Commands, folder: Path, recover: Any, capsys: Capture
) -> None:
    assert recover() == 0
    said = capsys.readouterr().out
    assert "SLURM jobs left      none" in said and "lock is removed" in said
    assert said.endswith("Give the command of the run again.\n")
    assert not list((folder / ".snakemake").glob("locks/*.lock"))
    # The marks stay: their jobs have to run again.
    assert list((folder / ".snakemake/incomplete").iterdir())
    assert recover() == 0
    assert "Snakemake's lock     none" in capsys.readouterr().out


def test_cancelled_and_unlocked_by_one_command(
    slurm: Commands, folder: Path, recover: Any, capsys: Capture
) -> None:
    slurm.jobs(job(1, folder), job(2, folder.parent))
    assert recover("--cancel") == 0
    assert "scancel 1" in slurm.asked
    assert not list((folder / ".snakemake").glob("locks/*.lock"))


def test_adoption_is_left_to_the_run(
    slurm: Commands, folder: Path, recover: Any, capsys: Capture
) -> None:
    slurm.jobs(job(1, folder))
    assert recover("--adopt") == 0
    assert capsys.readouterr().out.endswith("again, with MAMUSHI_LEFTOVER=adopt before it.\n")
    assert not any(line.startswith("scancel") for line in slurm.asked)


def test_a_living_run_is_left_alone(
    slurm: Commands, folder: Path, recover: Any, capsys: Capture
) -> None:
    held = doubles.hold(folder, print)
    assert held is not None
    try:
        assert recover("--cancel") == 2
    finally:
        held.release(settled=True)
    assert f"a run lives here (process {os.getpid()} on" in capsys.readouterr().err
    assert (folder / ".snakemake/locks/0.output.lock").exists()


def test_that_it_looked_does_not_make_a_killed_run_forgotten(
    slurm: Commands, folder: Path, recover: Any
) -> None:
    (folder / doubles.RECORD).write_text('{"begun": 1000.0}')
    assert recover() == 0
    held = doubles.hold(folder, print)
    assert held is not None and held.killed == 1000.0


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


def test_a_folder_without_a_run_is_told(tmp_path: Path, capsys: Capture) -> None:
    assert main(["recover", "--directory", str(tmp_path)]) == 2
    assert "no run was ever started here" in capsys.readouterr().err


# Results without a record


@pytest.mark.parametrize(
    ("written", "recorded", "expected"),
    [
        (500.0, None, False),  # before the run that was killed
        (1500.0, None, True),
        (1500.0, 1500.2, False),
        (1500.0, 900.0, True),  # the record tells of an earlier file
        (None, None, False),  # missing: the job runs in any case
    ],
)
def test_files_of_a_killed_run_without_a_record_of_their_own(
    tmp_path: Path, written: float | None, recorded: float | None, expected: bool
) -> None:
    file = tmp_path / "output"
    if written is not None:
        file.touch()
        os.utime(file, (written, written))
    record = None if recorded is None else SimpleNamespace(endtime=recorded)
    workflow = SimpleNamespace(persistence=SimpleNamespace(metadata=lambda path: record))
    found = unrecorded.unrecorded(workflow, SimpleNamespace(output=[str(file)]), since=1000.0)
    assert found is expected
