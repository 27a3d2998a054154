"""A run that gets signals, or loses the process that started it: real processes, tiny rules."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mamushi_runs.guard import session, stop
from tests.support.processes import until
from tests.support.workflow import ROOT, environment

SNAKEFILE = """
from mamushi_runs import hooks


rule all:
    input:
        "second",


rule first:
    output:
        "first",
    shell:
        "echo x >> began; while test -e slow; do sleep 0.05; done; touch {output}"


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
import argparse, sys
from pathlib import Path
from mamushi import cli
from mamushi_runs import workflow
from mamushi_runs.commands import run
workflow.tree = Path.cwd
workflow.profile = lambda name: Path("profile")
run.workflow.required = lambda args: []
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


@pytest.fixture
def started(folder: Path) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    """Starts `mamushi run` there, in a session of its own that ends with the test."""
    processes = []

    def start() -> subprocess.Popen[str]:
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
    for process in processes:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
        process.wait()


def in_session(process: subprocess.Popen[str]) -> list[int]:
    """The processes of a run that live."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state, *_ = (entry / "stat").read_text().rpartition(")")[2].split()
            if state != "Z" and os.getsid(int(entry.name)) == process.pid:
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize(
    ("number", "times", "send"),
    [
        (signal.SIGTERM, 1, os.kill),
        (signal.SIGINT, 1, os.kill),
        (signal.SIGINT, 1, os.killpg),
        (signal.SIGINT, 2, os.killpg),
    ],
)
def test_a_signal_ends_run_and_jobs_at_once_and_the_same_command_goes_on(
    folder: Path,
    started: Callable[[], subprocess.Popen[str]],
    number: signal.Signals,
    times: int,
    send: Callable[[int, int], None],
) -> None:
    process = started()
    until((folder / "began").exists)
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
    assert in_session(process) == []
    (folder / "slow").unlink()
    assert started().wait(60) == 0, (folder / "said").read_text()


def test_killed_alone_it_leaves_nothing_that_runs(
    folder: Path, started: Callable[[], subprocess.Popen[str]]
) -> None:
    process = started()
    until((folder / "began").exists)
    process.kill()
    process.wait()
    until(lambda: not in_session(process), 10)
    (folder / "slow").unlink()
    assert started().wait(60) == 0, (folder / "said").read_text()


@pytest.mark.parametrize("group", [False, True])
def test_killed_before_the_first_job_it_leaves_no_lock_in_the_way(
    folder: Path, started: Callable[[], subprocess.Popen[str]], group: bool
) -> None:
    """While Snakemake looks at what is to be done: it holds a lock of its own by then."""
    snakefile = (folder / "Snakefile").read_text()
    slow = snakefile.replace(
        "    hooks.begin(", "    while os.path.exists('slow'): time.sleep(0.05)\n    hooks.begin("
    )
    (folder / "Snakefile").write_text("import os, time\n" + slow)
    process = started()
    until(lambda: [*folder.glob(".snakemake/locks/*.lock")])
    if group:
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()
    (folder / "slow").unlink()
    until(lambda: not in_session(process), 10)
    assert started().wait(60) == 0, (folder / "said").read_text()
    assert "LockException" not in (folder / "said").read_text()


def test_a_second_command_says_in_one_line_that_a_run_is_at_work(
    folder: Path, started: Callable[[], subprocess.Popen[str]]
) -> None:
    """Before the first job, and while the process that started it is gone."""
    first = started()
    until(lambda: (folder / session.LOCK).is_file() and (folder / session.LOCK).read_text())
    second = started()
    assert second.wait(30) == 2
    (line,) = (folder / "said").read_text().splitlines()
    assert f"another run works in this folder ({os.uname().nodename} pid {first.pid})" in line


STATUS = "Name:\tpython\nSigIgn:\t{:016x}\nSigCgt:\t{:016x}\n"
INT = 1 << (signal.SIGINT - 1)


def test_a_loop_that_saves_is_not_asked_twice() -> None:
    assert not stop._is_ending(STATUS.format(0, INT))
    assert not stop._is_ending(STATUS.format(INT, 0))
    assert stop._is_ending(STATUS.format(0, 0))
    assert not stop._is_ending(STATUS.format(0, 0).replace("python", "bash"))
