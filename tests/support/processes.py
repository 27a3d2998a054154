"""Run a script in processes that share a model, or a command that may be killed."""

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

from mamushi.running.launch import SHARDS
from tests.support.workflow import ROOT, environment


def in_two_processes(folder: Path, script: str, *args: str | Path) -> None:
    """Run Python in two processes that share a model, with the tests' modules at hand. Raises
    ``AssertionError`` with what they said when one of them fails."""
    file = folder / "two.py"
    # As `python -m mamushi` ends: gloo may abort while Python takes itself down.
    end = "\nimport os, sys\nsys.stdout.flush()\nos._exit(0)\n"
    file.write_text(textwrap.dedent(script) + end)
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    launch.append("--nproc_per_node=2")
    done = subprocess.run(
        [*launch, str(file), *map(str, args)],
        check=False,
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": f"{ROOT}:{ROOT / 'workflow'}",
            "OMP_NUM_THREADS": "1",
            "ACCELERATE_USE_CPU": "true",
            **{SHARDS: "true"},
            "FSDP_CPU_RAM_EFFICIENT_LOADING": "true",
            "FSDP_AUTO_WRAP_POLICY": "TRANSFORMER_BASED_WRAP",
            "FSDP_VERSION": "2",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout


def mamushi(folder: Path, *words: str | Path, **variables: str) -> subprocess.Popen[str]:
    """Start ``python -m mamushi`` in a folder, in a session of its own; what it says goes into the
    file ``said`` there."""
    with (folder / "said").open("a") as said:
        return subprocess.Popen(
            [sys.executable, "-m", "mamushi", *map(str, words)],
            cwd=folder,
            env=environment(PYTHONPATH=str(ROOT / "workflow"), **variables),
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            text=True,
        )


def until(true: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait until it is so; raises ``AssertionError`` after so many seconds."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)
