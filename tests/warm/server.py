"""Processes that begin where the imports of torch and transformers end.

A small run of the workflow is dozens of commands, of which each imports libraries for four seconds
and computes for one. The server imports them once, and forks for every command that
``site/sitecustomize.py`` hands to it: a process like any other, with the command's arguments,
folder, environment and files, that ends when the command is killed. Of the package itself nothing
is imported before the fork.

    python -m tests.warm.server SOCKET      ends with its standard input
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import threading
import traceback

LIBRARIES = (
    "accelerate",
    "jinja2",
    "jsonschema",
    "matplotlib.figure",
    "numpy",
    "pandas",
    "pyarrow.compute",
    "pyarrow.csv",
    "pyarrow.parquet",
    "safetensors.torch",
    "scipy.stats",
    "seaborn",
    "sklearn.linear_model",
    "sklearn.neural_network",
    "snakemake.cli",
    "tokenizers",
    "torch",
    "tqdm",
    "transformers.generation",
    "transformers.modeling_utils",
    "transformers.models.auto",
    "transformers.models.llama.modeling_llama",
    "transformers.tokenization_utils_tokenizers",
)


def main(address: str) -> None:
    """Serve until standard input ends."""
    for name in LIBRARIES:
        importlib.import_module(name)
    # What is there by now stays, and a process that collects would copy all of its pages.
    gc.collect()
    gc.freeze()
    # A process is no longer of interest once it has said how it ended.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(address)
    listening.listen(64)
    print("ready", flush=True)
    while True:
        ready, _, _ = select.select([listening, sys.stdin], [], [])
        if sys.stdin in ready:
            return
        line, _ = listening.accept()
        if os.fork() == 0:
            listening.close()
            os._exit(_serve(line))
        line.close()


def _serve(line: socket.socket) -> int:
    """In the forked process: become the command, run it, and say how it ended."""
    length, files, _, _ = socket.recv_fds(line, 8, 3)
    with line.makefile("rb") as read:
        asked = json.loads(read.read(int.from_bytes(length, "big")))
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.orig_argv[1:] = asked["words"]
    search = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    sys.path[:] = search + [part for part in sys.path if part not in search]
    threading.Thread(target=_obey, args=(line,), daemon=True).start()
    status = _run(asked["words"])
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    line.send(bytes([status]))
    return status


def _obey(line: socket.socket) -> None:
    """Take signals that the command was sent; die with it."""
    while number := line.recv(1):
        os.kill(os.getpid(), number[0])
    os.kill(os.getpid(), signal.SIGKILL)


def _run(words: list[str]) -> int:
    """The exit status of ``python`` with these words."""
    try:
        if words[0] == "-m":
            sys.argv = [words[1], *words[2:]]
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = words
            runpy.run_path(words[0], run_name="__main__")
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return (end.code or 0) & 255
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    main(sys.argv[1])
