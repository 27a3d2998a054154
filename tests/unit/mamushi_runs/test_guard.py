"""A run that gets signals, is killed, or meets another one: real processes, tiny rules."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mamushi_runs import guard
from tests.support.processes import until
from tests.support.workflow import ROOT, environment

SNAKEFILE = """
from mamushi_runs import hooks

config["models"] = {}


rule all:
    input:
        "second",


rule first:
    output:
        "first",
    log:
        "log",
    shell:
        "echo $$ > began; while test -e slow; do sleep 0.05; done; touch {output}"


rule second:
    input:
        "first",
    output:
        "second",
    shell:
        "touch {output}"


onstart:
    hooks.begin(workflow, config)


onsuccess:
    hooks.end(workflow, config, succeeded=True)


onerror:
    hooks.end(workflow, config, succeeded=False)
"""
COMMAND = """
import sys
from pathlib import Path
from mamushi import cli
from mamushi_runs.commands import _run
_run.tree = Path.cwd
_run.profile = lambda name: Path("profile")
_run.required = lambda args: []
sys.exit(cli.main(["run", "all"]))
"""
"""`mamushi run all` of a workflow that stands in the folder."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "profile").mkdir()
    (tmp_path / "profile" / "config.yaml").write_text("cores: 1\nrerun-incomplete: true\n")
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    (tmp_path / "command.py").write_text(COMMAND)
    (tmp_path / "slow").touch()
    return tmp_path


Start = Callable[[], "subprocess.Popen[str]"]


@pytest.fixture
def started(folder: Path) -> Iterator[Start]:
    """Starts `mamushi run` there, in a session of its own; ends all that works there."""
    processes = []

    def start() -> subprocess.Popen[str]:
        (folder / "began").unlink(missing_ok=True)
        with (folder / "said").open("w") as said:
            process = subprocess.Popen(
                [sys.executable, "command.py"],
                cwd=folder,
                env=environment(PYTHONPATH=str(ROOT / "workflow")),
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                text=True,
            )
        processes.append(process)
        return process

    yield start
    for pid in at_work(folder):
        os.kill(pid, signal.SIGKILL)
    for process in processes:
        process.wait()


def at_work(folder: Path) -> list[int]:
    """The processes that work in a folder."""
    pids = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state, *_ = (entry / "stat").read_text().rpartition(")")[2].split()
            here = Path(os.readlink(entry / "cwd")) == folder
            if state != "Z" and here and int(entry.name) != os.getpid():
                pids.append(int(entry.name))
        except OSError:
            continue
    return pids


def job_began(folder: Path) -> bool:
    return (folder / "began").exists() and bool((folder / "began").read_text())


@pytest.mark.parametrize(
    ("number", "times", "send"),
    [
        (signal.SIGTERM, 1, os.kill),
        (signal.SIGINT, 1, os.killpg),
        (signal.SIGINT, 2, os.killpg),
    ],
)
def test_a_signal_ends_run_and_jobs_at_once_and_the_same_command_goes_on(
    folder: Path, started: Start, number: signal.Signals, times: int, send: Callable[..., None]
) -> None:
    process = started()
    until(lambda: job_began(folder))
    began = time.monotonic()
    for _ in range(times):
        send(process.pid, number)
        time.sleep(0.2)
    assert process.wait(60) == 128 + number
    assert time.monotonic() - began < 10
    said = (folder / "said").read_text()
    assert said.count("mamushi: stopping;") == 1
    assert said.splitlines()[-1].startswith("mamushi run: ")
    assert said.splitlines()[-1].endswith("; the same command goes on with what is there")
    assert "Traceback" not in said and "failed: " not in said
    assert at_work(folder) == []
    (folder / "slow").unlink()
    assert started().wait(60) == 0, (folder / "said").read_text()


def test_killed_it_leaves_no_lock_in_the_way(folder: Path, started: Start) -> None:
    """Snakemake itself with -9, which is the child of the command."""
    process = started()
    until(lambda: job_began(folder))
    os.kill(int((folder / guard.LOCK).read_text().rpartition(" ")[2]), signal.SIGKILL)
    assert process.wait(60) == 128 + signal.SIGKILL
    (folder / "slow").unlink()
    assert started().wait(60) == 0, (folder / "said").read_text()


def test_a_second_command_says_in_one_line_that_a_run_is_at_work(
    folder: Path, started: Start
) -> None:
    """Also when the process that started it is gone."""
    first = started()
    until(lambda: job_began(folder))
    first.kill()
    first.wait()
    second = started()
    assert second.wait(30) == 2
    (line,) = (folder / "said").read_text().splitlines()
    assert f"another run works in this folder ({os.uname().nodename} pid " in line


def test_a_job_that_is_ended_from_outside_has_failed(folder: Path, started: Start) -> None:
    process = started()
    until(lambda: job_began(folder))
    (folder / "log").write_text("mamushi first: stopped by SIGTERM after step 3 of 9\n")
    os.kill(int((folder / "began").read_text()), signal.SIGTERM)
    assert process.wait(60) == 1
    said = (folder / "said").read_text()
    assert "first failed: mamushi first: stopped by SIGTERM after step 3 of 9; see log" in said
    (folder / "slow").unlink()
    assert started().wait(60) == 0


# SLURM ------------------------------------------------------------------------------------------

RUN = "00000000-1111-2222-3333-444444444444"


def test_jobs_that_a_killed_run_left_in_slurm_are_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is done about them is in tests/slurm."""
    lines = [f"7 {RUN} {tmp_path}", f"8 {RUN} /elsewhere", f"9 mine {tmp_path}", "odd"]
    script = tmp_path / "squeue"
    script.write_text("#!/bin/sh\necho '" + "\n".join(lines) + "'\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path), os.environ["PATH"]]))
    monkeypatch.chdir(tmp_path)
    assert guard.left_jobs() == {"7": RUN}
