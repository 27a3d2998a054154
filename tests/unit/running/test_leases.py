"""Leases of GPUs: no two processes of a machine see the same one."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from mamushi.running import leases
from mamushi.running.leases import SWITCH, VISIBLE, leased
from tests.support.processes import until
from tests.support.workflow import ROOT, environment

HOLDER = """
import os, sys, time
from mamushi.running.leases import leased
with leased(True, int(sys.argv[1])):
    print(os.environ["CUDA_VISIBLE_DEVICES"], flush=True)
    time.sleep(60)
"""


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two GPUs, as far as anybody looks, and a folder for their leases."""
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    monkeypatch.setenv(VISIBLE, "0,1")
    monkeypatch.setenv(SWITCH, str(tmp_path / "leases"))


@pytest.fixture
def holder(gpus: None) -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Starts processes that lease so many GPUs, print which, and stay."""
    processes = []

    def start(count: int = 1) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(count)],
            env=environment(PYTHONPATH=str(ROOT / "workflow")),
            stdout=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def test_each_job_sees_a_gpu_of_its_own_and_the_next_one_waits(
    holder: Callable[..., "subprocess.Popen[str]"],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    first, second = holder(), holder()
    assert first.stdout and second.stdout
    seen = [first.stdout.readline().strip(), second.stdout.readline().strip()]
    assert sorted(seen) == ["0", "1"]

    def kill(seconds: float) -> None:
        os.kill(first.pid, signal.SIGKILL)
        first.wait()

    monkeypatch.setattr(leases, "time", SimpleNamespace(sleep=kill))
    with leased(True) as name:
        assert name == seen[0] == os.environ[VISIBLE]
    said = capsys.readouterr().err
    assert said.splitlines() == [
        "waiting for 1 of 2 GPUs, which other jobs have leased",
        f"on GPU {seen[0]}",
    ]
    assert os.environ[VISIBLE] == "0,1"


def test_several_are_leased_together_or_not_at_all(
    holder: Callable[..., "subprocess.Popen[str]"],
) -> None:
    one = holder()
    assert one.stdout and one.stdout.readline()
    both = holder(2)
    assert both.stdout is not None
    # While the second waits, the free one is not held.
    with leased(True):
        pass
    one.kill()
    until(lambda: one.poll() is not None)
    assert both.stdout.readline().strip() == "0,1"


@pytest.mark.parametrize(("name", "value"), [("SLURM_JOB_ID", "7"), (SWITCH, "off")])
def test_nothing_is_leased_where_something_else_hands_them_out(
    gpus: None, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with leased(True) as lease:
        assert lease is None and os.environ[VISIBLE] == "0,1"
