"""Processes that begin where the imports of torch and transformers end.

A small run of the workflow is dozens of commands, of which each imports libraries for four seconds
and computes for one. The server imports them once, and forks for every command that
``site/sitecustomize.py`` hands to it: a process like any other, with the command's arguments,
folder, environment and files, that takes its signals and ends when it is killed. Of the package
itself nothing is imported before the fork.

    python -m tests.support.warm.server SOCKET      ends with its standard input
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import traceback
from typing import Any

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
            os.unlink(address)
            with contextlib.suppress(OSError):
                # The folder that was made for it; any other has more in it.
                os.rmdir(os.path.dirname(address))
            return
        line, _ = listening.accept()
        if os.fork() == 0:
            listening.close()
            os._exit(_look_after(line))
        line.close()


def _look_after(line: socket.socket) -> int:
    """In a process of its own: start the command, pass its signals on, and tell how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    length, files, _, _ = socket.recv_fds(line, 8, 3)
    with line.makefile("rb") as read:
        asked = json.loads(read.read(int.from_bytes(length, "big")))
    command = os.fork()
    if command == 0:
        line.close()
        os._exit(_become(asked, files))
    for file in files:
        os.close(file)
    ended = os.pidfd_open(command)
    while True:
        ready, _, _ = select.select([line, ended], [], [])
        if ended in ready:
            status = os.waitstatus_to_exitcode(os.waitpid(command, 0)[1])
            with contextlib.suppress(OSError):
                line.send(bytes([-status, 0] if status < 0 else [0, status]))
            return 0
        sent = line.recv(1)
        os.kill(command, sent[0] if sent else signal.SIGKILL)
        if not sent:
            # Who asked was killed, and its command with it.
            return 0


def _become(asked: dict[str, Any], files: list[int]) -> int:
    """Run the command with its files, folder and environment."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    # Not what the server itself ignores, as one that was started by `nohup` does.
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in asked["ignored"]:
        signal.signal(number, signal.SIG_IGN)
    sys.orig_argv[1:] = asked["words"]
    search = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    sys.path[:] = search + [part for part in sys.path if part not in search]
    status = _run(asked["words"])
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    return status


def _run(words: list[str]) -> int:
    """The exit status of ``python`` with these words."""
    try:
        if words[0] == "-m":
            sys.argv = words[1:]
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        elif words[0] == "-c":
            sys.argv = ["-c", *words[2:]]
            exec(compile(words[1], "<string>", "exec"), {"__name__": "__main__"})
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
