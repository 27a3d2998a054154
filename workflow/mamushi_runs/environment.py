"""What the rules' shell commands find in their environment."""

from __future__ import annotations

import os
import sys

from mamushi.artifacts.paths import CACHE
from mamushi.running.launch import GPUS
from mamushi.running.warm import SWITCH


def give(packages: str, execution: str, needs: str, gpus: str) -> None:
    """Let the commands that this process starts find the package, its Python and how to run.

    ``packages`` is the folder of the package, which stands beside the Snakefile. ``execution``, as
    JSON, has no effect on results and is therefore no parameter of a rule: a change of it runs
    nothing again; so it is with ``needs``, the texts that the comparisons take of each dataset, and
    with ``gpus``, how many of them a model's jobs have where they have several. The Python is the
    one that runs Snakemake; a conda environment puts its own first. Those that compile a model
    share what they compiled, in a folder of the results, which is nobody else's. torch is imported
    once for all of them (``mamushi.running.warm``) unless the user has switched that off. All of it
    through the environment, since ``shell.prefix`` would reach into the rules of a workflow that
    imports this one.
    """
    os.environ["PYTHONPATH"] = _in_front(packages, os.environ.get("PYTHONPATH"))
    os.environ["PATH"] = _in_front(os.path.dirname(sys.executable), os.environ.get("PATH"))
    os.environ["MAMUSHI_EXECUTION"] = execution
    os.environ["MAMUSHI_NEEDS"] = needs
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", os.path.abspath(f"{CACHE}/compiled"))
    os.environ[GPUS] = gpus
    os.environ.setdefault(SWITCH, "on")


def _in_front(folder: str, folders: str | None) -> str:
    """Return a search path with this folder first."""
    others = [each for each in (folders or "").split(os.pathsep) if each not in ("", folder)]
    return os.pathsep.join([folder, *others])
