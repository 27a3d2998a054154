"""The guard in Snakemake itself, with a workflow of two rules and no cluster."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mamushi_runs.guard import doubles

ROOT = Path(__file__).parents[4]
SNAKEFILE = """
from mamushi_runs import hooks


rule all:
    input:
        "last",


rule first:
    output:
        "first",
    params:
        word=config.get("word", "a"),
    shell:
        "echo {params.word} > {output}; echo . >> ran; test ! -e slow || sleep 60"


rule last:
    input:
        "first",
    output:
        "last",
    shell:
        "cp {input} {output}"


onstart:
    hooks.begin(workflow, config)


onsuccess:
    hooks.end(workflow, config, succeeded=True)


onerror:
    hooks.end(workflow, config, succeeded=False)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "Snakefile").write_text(SNAKEFILE, encoding="utf-8")
    return tmp_path


def start(folder: Path, *args: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "snakemake", "--cores", "1", "--rerun-incomplete", *args],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "workflow")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def run(folder: Path, *args: str) -> tuple[int, str]:
    process = start(folder, *args)
    said, _ = process.communicate(timeout=300)
    return process.returncode, said


def runs(folder: Path) -> int:
    """How often the first rule ran."""
    return (folder / "ran").read_text().count(".")


@pytest.fixture
def living(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A run whose job takes long."""
    (folder / "slow").touch()
    process = start(folder)
    deadline = time.monotonic() + 120
    while not (folder / "ran").exists():
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.1)
    yield process
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_a_run_notes_its_end(folder: Path) -> None:
    assert run(folder)[0] == 0
    assert json.loads((folder / doubles.RECORD).read_text()) == {}


def test_a_second_run_is_refused_whatever_became_of_the_lock(
    folder: Path, living: subprocess.Popen[str]
) -> None:
    assert run(folder, "--unlock")[0] == 0
    for args in ([], ["--nolock"]):
        code, said = run(folder, *args)
        assert code != 0
        assert f"another run works in this folder (process {living.pid} on" in said
    # One may look.
    assert run(folder, "--nolock", "--dry-run")[0] == 0
    assert runs(folder) == 1 and living.poll() is None


def test_after_a_kill_another_run_may_start(folder: Path, living: subprocess.Popen[str]) -> None:
    os.killpg(living.pid, signal.SIGKILL)
    living.wait()
    (folder / "slow").unlink()
    assert run(folder, "--unlock")[0] == 0
    code, said = run(folder)
    assert code == 0, said
    assert runs(folder) == 2
    assert json.loads((folder / doubles.RECORD).read_text()) == {}


@pytest.mark.parametrize("word", ["a", "b"], ids=["same settings", "other settings"])
def test_a_result_that_was_finished_alone_is_not_taken_as_it_is(folder: Path, word: str) -> None:
    """Its main process was killed, so that Snakemake has no record of its settings."""
    assert run(folder)[0] == 0
    (folder / "last").unlink()
    for record in (folder / ".snakemake" / "metadata").iterdir():
        record.unlink()
    # Without a killed run there is nothing to look at again: results may come from elsewhere.
    code, said = run(folder, "--config", f"word={word}")
    assert code == 0 and runs(folder) == 1, said
    (folder / "last").unlink()
    (folder / doubles.RECORD).write_text(json.dumps({"begun": time.time() - 3600}))
    code, said = run(folder, "--config", f"word={word}")
    assert code == 0, said
    assert "1 of its jobs finished without it (first)" in said
    assert runs(folder) == 2 and (folder / "last").read_text() == f"{word}\n"
    assert "Nothing to be done" in run(folder, "--config", f"word={word}")[1]
