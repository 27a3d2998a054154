"""Run a script as `accelerate launch` does on two devices."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

from tests.support.workflow import ROOT


def in_two_processes(folder: Path, script: str, *args: str | Path) -> None:
    """Run Python in two processes that know of each other, with the tests' modules at hand.

    Raises ``AssertionError`` with what they said when one of them fails.
    """
    file = folder / "two.py"
    file.write_text(textwrap.dedent(script))
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    done = subprocess.run(
        [*launch, str(file), *map(str, args)],
        check=False,
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": f"{ROOT}:{ROOT / 'workflow'}",
            "OMP_NUM_THREADS": "1",
            "ACCELERATE_USE_CPU": "true",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout
