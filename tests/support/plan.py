"""``python -m mamushi_runs plan`` of this repository's workflow, as its user gives it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.workflow import ROOT, environment


def plan(
    *words: str | Path, directory: Path, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """The command with these words, in a folder."""
    given = list(map(str, words))
    options = given[: given.index("--")] if "--" in given else given
    rest = given[len(options) + 1 :]
    line = [*options, "--", *rest, "--snakefile", str(ROOT / "Snakefile")]
    done = subprocess.run(
        [sys.executable, "-m", "mamushi_runs", "plan", *line, "--directory", str(directory)],
        env=environment(PYTHONPATH=str(ROOT / "workflow")),
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )
    assert not check or done.returncode == 0, done.stderr
    return done
