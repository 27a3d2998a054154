"""What a command took: what it says itself, and what is read from its log."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mamushi.running import usage
from mamushi.running.usage import Usage
from tests.support.workflow import ROOT


def test_what_is_said_is_read_and_the_last_counts() -> None:
    used = Usage(6.41, 5.98, 412.0)
    said = usage.spell("left-models", used)
    assert said == "mamushi left-models: took 6.41 s, 5.98 s of CPU, 412 MB"
    assert usage.parse(said) == used
    text = f"{usage.spell('a', Usage(1, 2, 3))}\n{said}\nof a library at its end\n"
    assert usage.parse(text) == used


@pytest.mark.parametrize(
    "text",
    [
        "mamushi retrain: error: no texts",
        "mamushi retrain: took nan s, 5.98 s of CPU, 412 MB",
        "mamushi retrain: took 6.41 s, 5.98 s of CPU, 41",
        "a text of mamushi retrain: took 6.41 s, 5.98 s of CPU, 412 MB",
    ],
)
def test_what_does_not_say_it_is_none(text: str) -> None:
    assert usage.parse(text) is None


def test_a_stages_log_ends_with_what_the_kernel_counts(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "mamushi", "qualitative", "--out-folder", "results/tables"]
    words += ["--settings", json.dumps({"cells": [], "selector": "s"})]
    log, began = tmp_path / "log", time.monotonic()
    with log.open("wb") as said:
        running = subprocess.Popen(
            words,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT / "workflow")},
            stdout=said,
            stderr=subprocess.STDOUT,
        )
        _, status, used = os.wait4(running.pid, 0)
    running.returncode = os.waitstatus_to_exitcode(status)
    wall, text = time.monotonic() - began, log.read_text(encoding="utf-8")
    assert running.returncode == 0, text
    found = usage.parse(text.splitlines()[-1])
    assert found is not None, text
    assert 0 < found.wall < wall
    # All but what Python does at its end.
    assert found.cpu == pytest.approx(used.ru_utime + used.ru_stime, rel=0.1, abs=0.1)
    assert 20 < found.memory_mb <= used.ru_maxrss * 1.024e-3 + 1


SAY = "import time; from mamushi.running import usage; usage.report('a', time.monotonic())"
LARGE = "x = b'1' * 300_000_000"


def said(code: str) -> Usage:
    """What a new process says after this code."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT / "workflow")},
        capture_output=True,
        text=True,
        check=True,
    )
    found = usage.parse(done.stderr)
    assert found is not None
    return found


def test_children_that_have_ended_are_counted() -> None:
    burn = f"import time; {LARGE}\nwhile time.process_time() < 1: pass"
    found = said(f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}])\n{SAY}")
    assert 1 <= found.cpu < 1.5
    assert 300 < found.memory_mb < 400


def test_the_memory_of_the_process_that_starts_a_command_is_not_counted() -> None:
    """As Snakemake, which is large in a run of thousands of jobs, starts one by a shell."""
    start = f"subprocess.run(['bash', '-c', 'exec \"$0\" -c \"$1\"', sys.executable, {SAY!r}])"
    assert said(f"import subprocess, sys; {LARGE}; {start}").memory_mb < 100
