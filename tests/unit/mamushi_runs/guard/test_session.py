"""The guard in Snakemake itself, with a workflow of a few rules and no cluster."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mamushi.errors import UserError
from mamushi_runs.guard import session
from tests.support.slurm_commands import LIMIT, Commands

ROOT = Path(__file__).parents[4]
WRITE = """
import json
import sys

from mamushi.io.files import write_json

write_json(sys.argv[1], {"settings": json.loads(sys.argv[2]), "inputs": {}, "versions": {}})
"""
SNAKEFILE = """
import sys

from mamushi_runs import hooks


rule all:
    input:
        "last",
    localrule: True


rule first:
    output:
        card="first.json",
    params:
        settings='{"word": "%s"}' % config.get("word", "a"),
        python=sys.executable,
    shell:
        "echo . >> ran; while test -e slow; do sleep 0.1; done;"
        " {params.python} write.py {output} {params.settings:q}"


rule last:
    input:
        "first.json",
    output:
        "last",
    localrule: True
    shell:
        "cp {input} {output}"


rule parts:
    input:
        expand("part{number}", number=range(3)),
    localrule: True


rule part:
    output:
        "part{number}",
    shell:
        "exit 1"


onstart:
    hooks.begin(workflow, config)


onsuccess:
    hooks.end(workflow, config, succeeded=True)


onerror:
    hooks.end(workflow, config, succeeded=False)
"""
SLURM = (
    *("--executor", "slurm", "--jobs", "9", "--slurm-no-account", "--slurm-status-command"),
    *("squeue", "--slurm-init-seconds-before-status-checks", "1"),
    *("--default-resources", "slurm_partition=cpu", "runtime=1", "mem_mb=1", "--latency-wait", "2"),
)
SLOW = "while test -e slow; do sleep 0.1; done"
WORK = 'name="${1##*_}"; touch "part$name"'
"""The job of a part; the comment ends with its number."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "Snakefile").write_text(SNAKEFILE, encoding="utf-8")
    (tmp_path / "run" / "write.py").write_text(WRITE, encoding="utf-8")
    return tmp_path / "run"


def start(folder: Path, *args: str) -> subprocess.Popen[str]:
    with (folder / "said").open("w") as said:
        return subprocess.Popen(
            [sys.executable, "-m", "snakemake", "--cores", "1", "--rerun-incomplete", *args],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT / "workflow")},
            stdout=said,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )


def run(folder: Path, *args: str) -> tuple[int, str]:
    code = start(folder, *args).wait(timeout=300)
    return code, (folder / "said").read_text()


def soon(condition: Callable[[], Any], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.1)


def runs(folder: Path) -> int:
    """How often the first rule ran."""
    return (folder / "ran").read_text().count(".")


@pytest.fixture
def slow(folder: Path) -> Iterator[Path]:
    """Jobs take until this file is deleted."""
    (folder / "slow").touch()
    yield folder / "slow"
    (folder / "slow").unlink(missing_ok=True)


@pytest.fixture
def living(folder: Path, slow: Path) -> Iterator[subprocess.Popen[str]]:
    """A run with a job under way."""
    process = start(folder)
    soon((folder / "ran").exists, process)
    yield process
    slow.unlink(missing_ok=True)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_a_second_run_is_refused_whatever_became_of_the_lock(
    folder: Path, living: subprocess.Popen[str]
) -> None:
    code, said = run(folder, "--nolock")
    assert code != 0
    assert re.search(rf"another run works in this folder \(\S+ pid {living.pid}\)", said)
    with pytest.raises(UserError, match="another run works in this folder"):
        session.take(folder)
    # One may look.
    assert run(folder, "--nolock", "--dry-run")[0] == 0
    assert runs(folder) == 1 and living.poll() is None


def test_after_a_kill_another_run_may_start(folder: Path, living: subprocess.Popen[str]) -> None:
    os.killpg(living.pid, signal.SIGKILL)
    living.wait()
    (folder / "slow").unlink()
    assert (folder / session.BEGUN).exists()
    # As `mamushi run` does: its user gives the same command again.
    assert [*folder.glob(".snakemake/locks/*.lock")]
    with session.take(folder):
        assert not [*folder.glob(".snakemake/locks/*.lock")]
    code, said = run(folder)
    assert code == 0, said
    assert runs(folder) == 2 and "finished without it" not in said
    assert not (folder / session.BEGUN).exists()


def test_the_lock_of_another_workflow_stays(tmp_path: Path) -> None:
    locks = tmp_path / ".snakemake" / "locks"
    locks.mkdir(parents=True)
    (locks / "0.output.lock").touch()
    for _ in range(2):
        with session.take(tmp_path) as lock:
            assert [*locks.iterdir()]
            lock.sign_off()


def test_what_was_finished_alone_is_taken_over(folder: Path, living: subprocess.Popen[str]) -> None:
    """The main process is killed, and its job lives on and finishes."""
    living.kill()
    living.wait()
    (folder / "slow").unlink()
    deadline = time.monotonic() + 60
    while not (folder / "first.json").exists():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    code, said = run(folder, "--nolock")
    assert code == 0, said
    assert "1 jobs of an earlier run finished without it (first): taken over" in said
    assert runs(folder) == 1
    assert "Nothing to be done" in run(folder, "--nolock")[1]


def test_what_was_finished_alone_with_other_settings_is_made_again(folder: Path) -> None:
    """It has neither a record nor a mark, as a SLURM job leaves it. Without a run that did not end
    well, such results may come from elsewhere, and are left alone."""
    assert run(folder)[0] == 0
    for killed in (False, True):
        (folder / "last").unlink()
        for record in (folder / ".snakemake" / "metadata").iterdir():
            record.unlink()
        if killed:
            (folder / session.BEGUN).touch()
            os.utime(folder / session.BEGUN, (time.time() - 3600,) * 2)
        code, said = run(folder, "--config", "word=b")
        assert code == 0, said
        assert ("finished without it (first): computed again" in said) == killed
        assert runs(folder) == (2 if killed else 1)
    assert json.loads((folder / "last").read_text())["settings"] == {"word": "b"}
    assert "Nothing to be done" in run(folder, "--config", "word=b")[1]


def test_an_input_that_changed_makes_what_was_finished_alone_again(tmp_path: Path) -> None:
    from mamushi.io import files
    from mamushi_runs.guard import unrecorded

    (tmp_path / "input").write_text("a")
    digest = files.sha256(tmp_path / "input")
    made = {"settings": {"word": "a"}, "inputs": {"input": digest}, "versions": {}}
    card = {"provenance": made}
    files.write_json(tmp_path / "card.json", card)

    class Job:
        output = (str(tmp_path / "card.json"), str(tmp_path / "none.csv"))
        input = (str(tmp_path / "input"),)

        class params:
            settings = '{"word": "a"}'

    assert unrecorded.is_current(Job)
    (tmp_path / "input").write_text("b")
    assert not unrecorded.is_current(Job)
    Job.output = (str(tmp_path / "none.csv"),) * 2
    assert not unrecorded.is_current(Job)


# On SLURM, whose commands are made up


def test_a_full_queue_is_waited_out(slurm: Commands, folder: Path) -> None:
    slurm.work(WORK)
    slurm.refuse(5)
    code, said = run(folder, *SLURM, "parts")
    assert code == 0, said
    assert "Error in rule" not in said
    assert len(slurm.asked("sbatch")) == 5 + 3


def test_another_refusal_is_told_at_once(slurm: Commands, folder: Path) -> None:
    slurm.refuse(3, "sbatch: error: invalid partition specified: cpu")
    code, said = run(folder, *SLURM, "--keep-going", "parts")
    assert code != 0
    assert len(slurm.asked("sbatch")) == said.count("SLURM sbatch failed") == 3


def test_nothing_is_submitted_for_a_run_that_was_killed(slurm: Commands, folder: Path) -> None:
    slurm.refuse(1000)
    line = [session.SUBMIT / "sbatch", "--job-name", "a", "--comment", "b", "-D", folder]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, cwd=folder)
    deadline = time.monotonic() + 60
    while slurm.refusals == 1000:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert process.poll() is None and process.stdout is not None
    process.stdout.close()
    slurm.refuse(0)
    assert process.wait(timeout=60) == 1
    assert slurm.queue == []


@pytest.mark.usefixtures("slow")
def test_jobs_are_cancelled_while_they_are_asked_for(slurm: Commands, folder: Path) -> None:
    """Those are not in the plug-in's list."""
    slurm.work(SLOW)
    process = start(folder, *SLURM, "parts")
    soon(lambda: slurm.queue == ["RUNNING"] * 3, process)
    (slurm.folder / "hangs").touch()
    (slurm.folder / "hanging").unlink(missing_ok=True)
    soon((slurm.folder / "hanging").exists, process)
    process.send_signal(signal.SIGINT)
    time.sleep(1)
    assert "RUNNING" in slurm.queue
    (slurm.folder / "hangs").unlink()
    assert process.wait(timeout=120) != 0
    assert slurm.queue == [], (folder / "said").read_text()
    assert "Cancelling" in (folder / "said").read_text()
    assert not (folder / session.STOPPED).exists()


@pytest.mark.usefixtures("slow")
def test_an_interrupted_run_submits_nothing_more(slurm: Commands, folder: Path) -> None:
    slurm.work(SLOW)
    slurm.refuse(1000)
    process = start(folder, *SLURM, "parts")
    soon(lambda: len(slurm.asked("sbatch")) > 2, process)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=120) != 0
    assert LIMIT.splitlines()[0] not in (folder / "said").read_text()
    assert slurm.queue == []
