"""Jobs of one run that begin where the imports of torch and transformers end.

A grid of small models is hundreds of jobs, each of which would import libraries for three seconds
to compute for two. So the first job of a run that computes with a model starts a *server*, which
imports them once and forks for every job that is handed to it: a process like any other, with the
job's words, folder, environment, files and signals of its own, that ends when its command is
killed. Of this package a server keeps nothing for its jobs: each imports the code as it finds it.

A server belongs to the process that its first client is a child of, Snakemake, and ends with it.
It serves its own user alone, and only commands that would have imported the same: an abstract
socket's name says for which. Where there is none and none can be had, or a GPU was touched before
the fork, a command does what it would have done without; so it does within a job of SLURM, which
clears the step behind it, and without ``MAMUSHI_WARM=on``, which the workflow sets.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import importlib
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TextIO

from mamushi.running.interruption import SIGNALS
from mamushi.running.launch import SHARDS

SWITCH = "MAMUSHI_WARM"
LIBRARIES = (
    *("accelerate", "jinja2", "msgspec", "numpy", "pyarrow.compute", "pyarrow.parquet"),
    *("safetensors.torch", "scipy.stats", "tokenizers", "torch"),
    *("transformers.modeling_utils", "transformers.models.auto"),
    "transformers.tokenization_utils_tokenizers",
)
"""What jobs import; one that imports more does so itself."""
SERVER = "warm-server"
"""Word behind ``mamushi`` that starts a server: see ``mamushi.__main__``."""
ACCEPTED = b"+"
"""First answer of a server: from here on, the command is its own."""


def run_in_server(words: Sequence[str], start: bool) -> int | None:
    """Return the exit status of ``mamushi`` with these words in a warm process, whose server is
    started where there is none if ``start``; None if not run. If the process was killed by
    a signal, so is this one."""
    off = os.environ.get(SWITCH) != "on" or not hasattr(os, "pidfd_open")
    if off or {"SLURM_JOB_ID", SHARDS} & {*os.environ}:
        return None
    line, owner = None, os.getppid()
    with contextlib.suppress(OSError):
        line = _connected(address := _address(owner))
        if line is None and start:
            _start(address, owner)
            line = _connected(address)
    return None if line is None else hand_over(line, words)


def hand_over(line: socket.socket, words: Sequence[str]) -> int | None:
    """Run ``mamushi`` with these words in the server that is connected already."""
    caught = [number for number in SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
    asked = {
        "words": list(words),
        "folder": os.getcwd(),
        "environment": dict(os.environ),
        "ignored": [number for number in SIGNALS if number not in caught],
    }
    message = json.dumps(asked).encode("utf-8", "surrogateescape")

    def passed_on(number: int, _: object) -> None:
        if signal.SIGINT in caught:
            # As the command does, which shows that it was told: see ``mamushi_runs.guard.stop``.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        with contextlib.suppress(OSError):
            line.send(bytes([number]))

    try:
        socket.send_fds(line, [len(message).to_bytes(8, "big")], [0, 1, 2])
        line.sendall(message)
        if line.recv(1) != ACCEPTED:
            return None
    except OSError:
        return None
    for number in caught:
        signal.signal(number, passed_on)
    with contextlib.suppress(OSError):
        if end := line.recv(2):
            if end[0]:
                # It was killed by a signal, so this one is, too.
                if end[0] != signal.SIGKILL:
                    signal.signal(end[0], signal.SIG_DFL)
                os.kill(os.getpid(), end[0])
            return end[1]
    print("the process that was to do it is gone", file=sys.stderr)
    return 1


def _connected(address: bytes) -> socket.socket | None:
    """Return a line to the server of this address; None where there is none, or another user's."""
    line = socket.socket(socket.AF_UNIX)
    with contextlib.suppress(OSError):
        line.connect(address)
        if same_user(line):
            return line
    line.close()
    return None


def same_user(line: socket.socket) -> bool:
    """Return whether this user's process is at the other end of the line."""
    found = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", found)[1]) == os.getuid()


def _address(owner: int) -> bytes:
    """Return the name of the owner's server for commands such as this one: an abstract socket,
    which leaves no file, and is seen by all containers that share a network."""
    alike = [
        *(os.readlink(f"/proc/self/ns/{kind}") for kind in ("pid", "mnt")),
        *(owner, sys.executable, __file__),
        *(os.environ.get(name) for name in ("PYTHONPATH", "LD_LIBRARY_PATH")),
    ]
    return b"\0mamushi-" + hashlib.sha256(repr(alike).encode()).hexdigest()[:32].encode()


def _start(address: bytes, owner: int) -> None:
    """Start a server, and wait until it can be connected to; of several at a time one stays."""
    server = [sys.executable, "-m", "mamushi", SERVER, address[1:].decode(), str(owner)]
    # Whoever presses ^C means the jobs, which are told.
    with subprocess.Popen(
        server,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        process.stdout.read()
        # It is to outlive this process, which does not wait for it.
        process.returncode = 0


def main(name: str, owner: int) -> list[str] | None:
    """Serve until the process ``owner`` has ended; the processes of jobs end within. Returns None
    then, and in the process of each job its words."""
    listening = socket.socket(socket.AF_UNIX)
    try:
        until = os.pidfd_open(owner)
        listening.bind(b"\0" + name.encode())
    except OSError:
        return None
    listening.listen(128)
    # Nobody reads its output, but that it has come so far.
    os.dup2(0, 1)
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    load(LIBRARIES)
    words = serve(listening, until)
    if words is not None and sys.modules["torch"].cuda._is_in_bad_fork():
        # As if nothing had been handed over; the process stays the same.
        os.execv(sys.executable, [sys.executable, "-m", "mamushi", *words])
    return words


def load(libraries: Sequence[str]) -> None:
    """Import what forked processes are to have."""
    for name in libraries:
        importlib.import_module(name)
    # What is there by now stays, and a process that collects would copy all of its pages.
    gc.collect()
    gc.freeze()


def serve(listening: socket.socket, until: int) -> list[str] | None:
    """Wait for commands, and fork for each. Returns None once the descriptor ``until`` can be read,
    and in the process of each command its words."""
    # A process is no longer of interest once it has said how it ended.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        ready = select.select([listening.fileno(), until], [], [])[0]
        if until in ready:
            return None
        line, _ = listening.accept()
        if same_user(line) and os.fork() == 0:
            listening.close()
            os.close(until)
            return _supervise(line)
        line.close()


def _supervise(line: socket.socket) -> list[str]:
    """Start the command in a process of its own, pass signals on, and report how it ended. Returns
    in the process of the command alone, with its words."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    length, files, _, _ = socket.recv_fds(line, 8, 3)
    with line.makefile("rb") as read:
        asked = json.loads(
            read.read(int.from_bytes(length, "big")).decode(errors="surrogateescape")
        )
    command = os.fork()
    if command == 0:
        line.close()
        _adopt(asked, files)
        words: list[str] = asked["words"]
        return words
    for file in files:
        os.close(file)
    ended = os.pidfd_open(command)
    with contextlib.suppress(OSError):
        line.send(ACCEPTED)
    while True:
        ready = select.select([line.fileno(), ended], [], [])[0]
        if ended in ready:
            status = os.waitstatus_to_exitcode(os.waitpid(command, 0)[1])
            with contextlib.suppress(OSError):
                line.send(bytes([-status, 0] if status < 0 else [0, status]))
            os._exit(0)
        sent = line.recv(1)
        os.kill(command, sent[0] if sent else signal.SIGKILL)
        if not sent:
            # Who asked was killed, and its command with it.
            os._exit(0)


def _adopt(asked: dict[str, Any], files: Sequence[int]) -> None:
    """Take the command's files, folder and environment, and forget the modules of this package."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    # Those of the server stand for what its files were: a pipe cannot be told where it is.
    sys.stdout, sys.stderr = (_stream(number) for number in (1, 2))
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.environ.pop(SWITCH, None)
    for number in SIGNALS:
        default = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        signal.signal(number, signal.SIG_IGN if number in asked["ignored"] else default)
    for name in [each for each in sys.modules if each.partition(".")[0] == "mamushi"]:
        del sys.modules[name]


def _stream(number: int) -> TextIO:
    """Return a stream for a descriptor, which writes what is no UTF-8 as well."""
    waits = 1 if number == 2 else -1
    return open(*(number, "w", waits), encoding="utf-8", errors="backslashreplace", closefd=False)


def exit_with(run: Callable[[], int | None]) -> NoReturn:
    """End the process of a command with the status of ``run``, as Python does, but without taking
    apart what was imported: that would copy the server's memory first, a third of a second."""
    status = 1
    try:
        status = run() or 0
    except SystemExit as end:
        status = int(end.code or 0)
    except BaseException:
        traceback.print_exc()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status & 255)
