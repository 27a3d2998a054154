"""What the rules' shell commands find in their environment."""

from __future__ import annotations

import os
import sys

from mamushi.running.launch import GPUS


def give(packages: str, execution: str, needs: str, gpus: str) -> None:
    """Let the commands that this process starts find the package, its Python and how to run.

    ``packages`` is the folder of the package. What else is given, as JSON, has no effect on results
    and is therefore no parameter of a rule: the section ``execution``; the texts that the
    comparisons take of each dataset; and the GPUs of a model's jobs where they have several.
    Through the environment, since ``shell.prefix`` would reach into the rules of a workflow that
    imports this one.
    """
    for name, folder in (("PYTHONPATH", packages), ("PATH", os.path.dirname(sys.executable))):
        entries = os.environ.get(name, "").split(os.pathsep)
        rest = [entry for entry in entries if entry not in ("", folder)]
        os.environ[name] = os.pathsep.join([folder, *rest])
    os.environ["MAMUSHI_EXECUTION"] = execution
    os.environ["MAMUSHI_NEEDS"] = needs
    os.environ[GPUS] = gpus
