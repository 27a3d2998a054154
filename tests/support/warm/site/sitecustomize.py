"""Hands a command over to the server of warm processes, before Python has begun with it.

Python imports a module of this name when it starts, where it finds one: here, through PYTHONPATH,
and only in the commands of tests that ask for it (``MAMUSHI_WARM`` is the server's socket). Other
commands, and all of them where no server answers, go on as if this were not here.
"""

import os
import sys

_SOCKET = os.environ.get("MAMUSHI_WARM")
_WORDS = sys.orig_argv[1:]
_PACKAGE = _WORDS[:2] == ["-m", "mamushi"] or (
    _WORDS[:1] == ["-c"] and "from mamushi.cli import main" in _WORDS[1]
)
_PROGRAM = bool(_WORDS) and os.path.basename(_WORDS[0]) == "snakemake"


def _hand_over(address: str) -> None:
    """Let the server do it, pass signals on, and end as it ends."""
    import json
    import signal
    import socket

    line = socket.socket(socket.AF_UNIX)
    try:
        line.connect(address)
    except OSError:
        return
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
    taken = [number for number in signals if signal.getsignal(number) != signal.SIG_IGN]
    asked = {
        "words": _WORDS,
        "folder": os.getcwd(),
        "environment": dict(os.environ),
        "ignored": [number for number in signals if number not in taken],
    }
    message = json.dumps(asked).encode("utf-8", "surrogateescape")
    for number in taken:
        signal.signal(number, lambda number, _: line.send(bytes([number])))
    socket.send_fds(line, [len(message).to_bytes(8, "big")], [0, 1, 2])
    line.sendall(message)
    end = line.recv(2)
    if not end:
        os._exit(1)
    if end[0]:
        # It was killed by a signal, so this one is, too.
        if end[0] != signal.SIGKILL:
            signal.signal(end[0], signal.SIG_DFL)
        os.kill(os.getpid(), end[0])
    os._exit(end[1])


if _SOCKET and (_PACKAGE or _PROGRAM):
    _hand_over(_SOCKET)
