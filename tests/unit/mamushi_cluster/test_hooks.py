"""A run that gets signals, is killed, or meets another one: real processes, tiny rules."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from tests.support.processes import until
from tests.support.workflow import ROOT, environment

SNAKEFILE = """
from mamushi_cluster import hooks

config["models"] = {}


rule all:
    input:
        "second",


rule first:
    output:
        "first",
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
    hooks.begin(config)


onsuccess:
    hooks.end([])


onerror:
    hooks.end([])
"""
COMMAND = """
import sys
from pathlib import Path
from mamushi import cli
from mamushi_cluster.commands import _run
_run.tree = Path.cwd
_run.run_configs = lambda *_: []
sys.exit(cli.main(["run", "all", "--profile", "profile"]))
"""
"""`mamushi run all` of a workflow that stands in the folder."""
Start = Callable[[], "subprocess.Popen[str]"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "profile").mkdir()
    options = "cores: 1\nrerun-incomplete: true\nmax-jobs-per-timespan: 6000/2m\n"
    (tmp_path / "profile" / "config.yaml").write_text(options)
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    (tmp_path / "command.py").write_text(COMMAND)
    (tmp_path / "slow").touch()
    return tmp_path


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
                env=environment(PYTHONPATH=str(ROOT / "workflow"), MAMUSHI_WARM="off"),
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                text=True,
            )
        processes.append(process)
        return process

    yield start
    for process in at_work(folder):
        process.kill()
    for main in processes:
        main.wait()


def at_work(folder: Path) -> list[psutil.Process]:
    """The processes that work in a folder."""
    others = psutil.process_iter(["pid", "cwd", "status"])
    place = {"cwd": str(folder)}
    return [
        process
        for process in others
        if place.items() <= process.info.items()
        and process.info["status"] != psutil.STATUS_ZOMBIE
        and process.pid != os.getpid()
    ]


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
    assert said.count("mamushi: stopping;") == 1 and "Traceback" not in said
    last = f"mamushi run: stopped by {number.name}; the same command goes on from there"
    assert said.splitlines()[-1] == last
    assert at_work(folder) == []
    (folder / "slow").unlink()
    assert started().wait(60) == 0, (folder / "said").read_text()


def test_a_run_holds_its_folder_for_as_long_as_snakemake_lives(
    folder: Path, started: Start
) -> None:
    """Also when the command that started that is gone; and killed with -9, it leaves no lock."""
    first = started()
    until(lambda: job_began(folder))
    (snakemake,) = psutil.Process(first.pid).children()
    first.kill()
    first.wait()
    assert started().wait(30) == 2
    (line,) = (folder / "said").read_text().splitlines()
    assert "another run works in this folder" in line
    snakemake.kill()
    until(lambda: snakemake not in at_work(folder))
    (folder / "slow").unlink()
    assert started().wait(60) == 0, (folder / "said").read_text()
