"""What the rules' shell commands find in their environment."""

from __future__ import annotations

import json
import os
import sys


def give(packages: str, **values: object) -> None:
    """Let the commands that this process starts find the package, its Python and how to run.

    ``packages`` is the folder of the package. ``values``, by the names of variables, have no effect
    on results and are therefore no parameters of rules. Through the environment, since
    ``shell.prefix`` would reach into the rules of a workflow that imports this one.
    """
    for name, folder in (("PYTHONPATH", packages), ("PATH", os.path.dirname(sys.executable))):
        entries = os.environ.get(name, "").split(os.pathsep)
        rest = [entry for entry in entries if entry not in ("", folder)]
        os.environ[name] = os.pathsep.join([folder, *rest])
    os.environ.update({name: json.dumps(value, sort_keys=True) for name, value in values.items()})
