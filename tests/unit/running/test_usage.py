"""What a command says that it took."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.workflow import ROOT

LINE = re.compile(r"^mamushi [\w-]+: took (\d+\.\d+) s, (\d+\.\d+) s of CPU, (\d+) MB$")


class Usage(NamedTuple):
    wall: float
    cpu: float
    memory_mb: float


def parse(text: str) -> Usage:
    """What the last line of a log says."""
    found = LINE.match(text.splitlines()[-1])
    assert found is not None, text
    return Usage(*map(float, found.groups()))


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
    found = parse(text)
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
    return parse(done.stderr)


def test_children_that_have_ended_are_counted() -> None:
    burn = f"import time; {LARGE}\nwhile time.process_time() < 1: pass"
    found = said(f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}])\n{SAY}")
    assert 1 <= found.cpu < 1.5
    assert 300 < found.memory_mb < 400


def test_the_memory_of_the_process_that_starts_a_command_is_not_counted() -> None:
    """As Snakemake, which is large in a run of thousands of jobs, starts one by a shell."""
    start = f"subprocess.run(['bash', '-c', 'exec \"$0\" -c \"$1\"', sys.executable, {SAY!r}])"
    assert said(f"import subprocess, sys; {LARGE}; {start}").memory_mb < 100
