"""Commands as rules start them, in warm processes where there are any."""

import os
import subprocess
import sys
from pathlib import Path

from mamushi.running import warm
from tests.support.workflow import ROOT, environment

# A mistake that a stage tells as soon as it is there.
NO_OPTIONS = ["stage", "embed"]


def around() -> dict[str, str]:
    """What a rule's command finds around it."""
    return environment(PYTHONPATH=str(ROOT / "workflow"), **{warm.SWITCH: "on"})


def command(*words: str, **options: object) -> subprocess.Popen[str]:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    line = [sys.executable, "-m", "mamushi", *words]
    return subprocess.Popen(line, **{"env": around(), **pipes, **options})


def servers(owner: int) -> list[int]:
    """Servers of this process's jobs; those that one has forked have no parent of their own."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            group = os.getsid(int(folder.name))
        except OSError:
            continue
        if b"warm-server" in words and words[-2] == str(owner).encode():
            found += [int(folder.name)] if group == int(folder.name) else []
    return found
