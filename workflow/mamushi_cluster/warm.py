"""Jobs of one run that begin where the imports of torch and transformers end.

A grid of tiny models is hundreds of jobs that import libraries for four seconds and compute for
two: without this the demo takes 464 s of processor time in place of 290. So a run on this machine
starts one *server*, which imports the libraries once and forks for each job that
``python -m mamushi`` hands over. It ends with its standard input, that is, with the run.

This file runs as a script and knows nothing of the package, which each job imports as it finds it.
"""

import contextlib
import gc
import io
import marshal
import os
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence

SOCKET = "MAMUSHI_WARM"
"""Names the server's socket, or is ``off``, or ``server`` in a job of one."""
IN_SERVER = "server"
"""Its value in the job of a server, which says itself how it ended."""
LIBRARIES = (
    *("jinja2", "pandas", "pyarrow.compute", "pyarrow.parquet", "scipy.stats"),
    *("sklearn.feature_extraction.text", "sklearn.linear_model"),
    *("accelerate", "safetensors.torch", "torch", "transformers.models.llama.modeling_llama"),
    *("transformers.models.auto", "transformers.tokenization_utils_tokenizers"),
)
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP)


def start_server(libraries: Sequence[str] = LIBRARIES) -> "subprocess.Popen[bytes]":
    """Start a server for the jobs of this process, in a folder that no other user can enter."""
    import tempfile  # not at every command that is handed over

    os.environ[SOCKET] = path = os.path.join(tempfile.mkdtemp(prefix="mamushi-"), "socket")
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    line, environment = [sys.executable, "-P", __file__, path, *libraries], os.environ | single
    server = subprocess.Popen(line, stdin=subprocess.PIPE, env=environment, start_new_session=True)
    # Who connects while it imports waits.
    while not os.path.exists(path) and server.poll() is None:
        time.sleep(0.01)
    return server


def run_in_server(words: Sequence[str], path: str) -> int | None:
    """Return the exit status of ``mamushi`` with these words in a process of the server at the
    socket ``path``; None where there is none. Signals are passed on to that process."""
    line = socket.socket(socket.AF_UNIX)
    try:
        line.connect(path)
        socket.send_fds(line, [b"+"], [0, 1, 2])
        line.sendall(marshal.dumps(([*words], os.getcwd(), dict(os.environ))))
        (job,) = struct.unpack("i", line.recv(4))
    except (OSError, struct.error):
        return None
    for number in SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda number, _: os.kill(job, number))
    # A job that was killed leaves no status.
    return (line.recv(1) or bytes([128 + signal.SIGKILL]))[0]


def serve(path: str, libraries: Sequence[str], run: Callable[[list[str]], object]) -> None:
    """Fork for each command that is handed over at the socket ``path``, to ``run`` its words, until
    standard input ends."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen(128)
        for name in libraries:
            with contextlib.suppress(ImportError):
                __import__(name)
        gc.freeze()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while 0 not in select.select([0, listening.fileno()], [], [])[0]:
            line, _ = listening.accept()
            if os.fork() == 0:
                _become_job(line, run)
            line.close()
    os.unlink(path)
    os.rmdir(os.path.dirname(path))


def _become_job(line: socket.socket, run: Callable[[list[str]], object]) -> None:
    """Become the process of a command, and end with its status."""
    for number in (*SIGNALS, signal.SIGCHLD):
        default = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        signal.signal(number, default)
    for place, file in enumerate(socket.recv_fds(line, 1, 3)[1]):
        os.dup2(file, place)
        os.close(file)
    # Those of the server stand for what its files were: a pipe cannot be told where it is.
    sys.stdout, sys.stderr = _open_stream(1), _open_stream(2)
    words, folder, environment = marshal.load(line.makefile("rb"))
    if environment.get("SLURM_JOB_ID") != os.environ.get("SLURM_JOB_ID"):
        # A job of SLURM computes with what it was given.
        os._exit(1)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update({**environment, SOCKET: IN_SERVER})
    sys.path[:0] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    line.sendall(struct.pack("i", os.getpid()))
    # Where the command that waits is killed, this process is, too.
    threading.Thread(target=lambda: line.recv(1) or os._exit(1), daemon=True).start()
    status = 1
    try:
        run(words)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(bool(end.code))
    except BaseException:
        sys.excepthook(*sys.exc_info())
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    line.send(bytes([status & 255]))
    os._exit(status & 255)


def _open_stream(number: int) -> io.TextIOWrapper:
    buffering = 1 if number == 2 else -1
    return open(number, "w", buffering, "utf-8", "backslashreplace", closefd=False)


def _run_package(words: list[str]) -> None:
    sys.argv[:] = ["mamushi", *words]
    runpy.run_module("mamushi", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2:], _run_package)
