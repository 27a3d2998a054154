"""The server of ``mamushi.running.warm`` for all commands of a test process, Snakemake included.

A small run of the workflow is dozens of commands, of which each imports libraries for four seconds
and computes for one. ``site/sitecustomize.py`` hands them over: any Python program, before it has
begun.

    python -m tests.support.warm.server SOCKET      ends with its standard input
"""

import contextlib
import os
import runpy
import socket
import sys

from mamushi.running import warm

LIBRARIES = (
    *("jsonschema", "matplotlib.figure", "pandas", "pyarrow.csv", "snakemake.cli"),
    *("sklearn.linear_model", "sklearn.neural_network", "transformers.generation"),
    "transformers.models.llama.modeling_llama",
)


def main(address: str) -> None:
    """Serve until standard input ends; the processes of commands end within."""
    warm.load([*warm.LIBRARIES, *LIBRARIES])
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(address)
    listening.listen(64)
    print("ready", flush=True)
    words = warm.serve(listening, sys.stdin.fileno())
    if words is not None:
        sys.orig_argv[1:] = words
        search = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
        sys.path[:] = search + [part for part in sys.path if part not in search]
        warm.exit_with(lambda: _run(words))
    os.unlink(address)
    with contextlib.suppress(OSError):
        # The folder that was made for it; any other has more in it.
        os.rmdir(os.path.dirname(address))


def _run(words: list[str]) -> None:
    """``python`` with these words."""
    if words[0] == "-m":
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    elif words[0] == "-c":
        sys.argv = ["-c", *words[2:]]
        exec(compile(words[1], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = words
        runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1])
