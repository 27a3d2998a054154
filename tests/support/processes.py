"""Run a script in processes that share a model, or a command that may be killed."""

import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mamushi.running.launch import SHARDS
from tests.support.workflow import ROOT, environment, output_of, warmed


def in_two_processes(folder: Path, script: str, *args: str | Path) -> None:
    """Run Python in two processes that share a model, with the tests' modules at hand. Raises
    ``AssertionError`` with what they said when one of them fails."""
    file = folder / "two.py"
    # As `python -m mamushi` ends: gloo may abort while Python takes itself down.
    end = "os.environ.get('MAMUSHI_WARM') == 'server' or os._exit(0)"
    file.write_text(f"{textwrap.dedent(script)}\nimport os, sys\nsys.stdout.flush()\n{end}\n")
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    output_of(
        *(sys.executable, *launch, file, *args),
        cwd=ROOT,
        env=warmed(
            PYTHONPATH=f"{ROOT}:{ROOT / 'workflow'}",
            ACCELERATE_USE_CPU="true",
            FSDP_CPU_RAM_EFFICIENT_LOADING="true",
            FSDP_AUTO_WRAP_POLICY="TRANSFORMER_BASED_WRAP",
            FSDP_VERSION="2",
            **{SHARDS: "true"},
        ),
        timeout=300,
    )


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


def until(condition: Callable[[], Any], seconds: float = 60.0, every: float = 0.02) -> Any:
    """What ``condition`` returns once that is true; ``AssertionError`` after ``seconds``."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f"nothing within {seconds} s"
        time.sleep(every)
    return found
