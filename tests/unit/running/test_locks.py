"""One writer at a time, also across processes that are killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mamushi.running import locks
from tests.support.processes import until
from tests.support.workflow import ROOT, environment

HOLDER = """
import time
from pathlib import Path
from mamushi.running import locks
with locks.claimed([Path("results/a")]):
    Path("in").touch()
    time.sleep(60)
"""


def test_who_comes_second_waits_until_the_first_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    env = environment(PYTHONPATH=str(ROOT / "workflow"))
    process = subprocess.Popen([sys.executable, "-c", HOLDER], env=env)
    until(Path("in").exists)
    with locks.claimed([Path("results/b")]):
        assert capsys.readouterr().err == ""
    pause = locks.FileLock.acquire

    def acquire(lock: locks.FileLock, **options: float) -> object:
        if "poll_interval" in options:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        return pause(lock, **options)

    monkeypatch.setattr(locks.FileLock, "acquire", acquire)
    with locks.claimed([tmp_path / "results/a"]):
        said = capsys.readouterr().err
    assert said == "waiting for another process, which writes the same results/a\n"


def test_a_file_system_without_locks_lets_all_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(next(iter(locks.UNSUPPORTED)), "no locks")

    monkeypatch.setattr("fcntl.flock", refuse)
    with locks.exclusive(tmp_path / "lock", "waits"):
        assert "going without" in capsys.readouterr().err
