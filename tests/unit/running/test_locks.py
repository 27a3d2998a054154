"""One writer at a time, and no two processes of a machine on one GPU, also when they are killed."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from filelock import FileLock

from mamushi.running import locks
from mamushi.running.locks import SWITCH, VISIBLE, lease_gpus
from tests.support.processes import until
from tests.support.workflow import ROOT, environment

HOLDER = """
import os, time
from pathlib import Path
from mamushi.running.locks import claim_outputs, lease_gpus
with {holding}:
    print(os.environ.get("CUDA_VISIBLE_DEVICES"), flush=True)
    time.sleep(60)
"""
Start = Callable[[str], "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Starts processes that hold what is named, and print which GPUs they see; there are two."""
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    monkeypatch.setenv(VISIBLE, "0,1")
    monkeypatch.setenv(SWITCH, str(tmp_path / "leases"))
    processes = []

    def hold(holding: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDER.format(holding=holding)],
            env=environment(PYTHONPATH=str(ROOT / "workflow")),
            stdout=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process

    yield hold
    for process in processes:
        process.kill()
        process.communicate()


def gpus_of(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def kill(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.wait()


def test_who_comes_second_waits_until_the_first_is_killed(
    start: Start, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = start("claim_outputs([Path('results/a')])")
    assert gpus_of(first) == "0,1"
    with locks.claim_outputs([Path("results/b")]):
        assert capsys.readouterr().err == ""
    acquire = FileLock.acquire

    def acquire_later(lock: FileLock, **options: float) -> object:
        if "poll_interval" in options:
            kill(first)
        return acquire(lock, **options)

    monkeypatch.setattr(FileLock, "acquire", acquire_later)
    with locks.claim_outputs([Path("results/a").absolute()]):
        said = capsys.readouterr().err
    assert said == "waiting for another process, which writes the same results/a\n"


def test_a_file_system_without_locks_lets_all_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSYS, "no locks")

    monkeypatch.setattr("fcntl.flock", refuse)
    with locks.exclusive(tmp_path / "lock", "waits"):
        assert "going without" in capsys.readouterr().err
    (tmp_path / "file").touch()
    # No folder for the lock is no missing lock: without it two would write one result.
    with pytest.raises(FileExistsError), locks.exclusive(tmp_path / "file" / "lock", "waits"):
        pass


def test_each_job_sees_a_gpu_of_its_own_and_the_next_one_waits(
    start: Start, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = start("lease_gpus(True)"), start("lease_gpus(True)")
    seen = [gpus_of(first), gpus_of(second)]
    assert sorted(seen) == ["0", "1"]
    monkeypatch.setattr(locks, "time", SimpleNamespace(sleep=lambda seconds: kill(first)))
    with lease_gpus(True):
        assert os.environ[VISIBLE] == seen[0]
    said = capsys.readouterr().err.splitlines()
    assert said == ["waiting for 1 of 2 GPUs, which other jobs have leased", f"on GPU {seen[0]}"]
    assert os.environ[VISIBLE] == "0,1"


def test_several_are_leased_together_or_not_at_all(start: Start) -> None:
    one = start("lease_gpus(True)")
    assert gpus_of(one)
    both = start("lease_gpus(True, 2)")
    # While the second waits, the free one is not held.
    with lease_gpus(True):
        pass
    kill(one)
    until(lambda: one.poll() is not None)
    assert gpus_of(both) == "0,1"


@pytest.mark.parametrize(("name", "value"), [("SLURM_JOB_ID", "7"), (SWITCH, "off")])
def test_nothing_is_leased_where_something_else_hands_them_out(
    start: Start, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with lease_gpus(True):
        assert os.environ[VISIBLE] == "0,1"
