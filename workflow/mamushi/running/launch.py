"""Several processes for one job, one for each of its GPUs, over which a model is sharded.

The command itself is the first of them: it holds claims and leases, is known to Snakemake and
SLURM, gets their signals, and reports. The others run the same command with a rank, write nothing,
and end when the first one does, however that ends; under `torchrun` they would go on when it is
killed. So no other launcher is taken.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from mamushi.errors import UserError

SHARDS = "MAMUSHI_SHARDS"
"""Set in the processes of such a job: what several processes do otherwise is share the texts."""
GPUS = "MAMUSHI_GPUS"
"""JSON: of each model whose jobs take several GPUs, how many; as the workflow has counted."""
GRACE = 10.0
"""Seconds that the first process has to say itself what made another one fail."""


def process_count(gpu: bool, files: Any) -> int:
    """Return the processes for a job with these files: 1 but for one that computes on a ``gpu``
    with a model that is to be sharded."""
    card = getattr(files, "model_card", None)
    if not gpu or card is None:
        return 1
    known: Mapping[str, int] = json.loads(os.environ.get(GPUS, "{}"))
    return int(known.get(Path(card).parent.name, 1))


def refuse_others() -> None:
    """Raise ``UserError`` where another launcher has started several processes of this command."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        do = "start it once, and set execution.gpus_per_job"
        raise UserError("a launcher has started several of this command", where="WORLD_SIZE", do=do)


def is_secondary() -> bool:
    """Return whether this is a process beside the first of a job."""
    return int(os.environ.get("RANK", "0")) > 0


@contextlib.contextmanager
def processes(count: int, words: Sequence[str]) -> Iterator[None]:
    """Within the block, this process is the first of ``count`` that run ``mamushi`` with these
    words; the others have ended after it."""
    if count == 1:
        yield
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def variables(rank: int) -> dict[str, str]:
        own = dict.fromkeys(("RANK", "LOCAL_RANK"), str(rank))
        both = dict.fromkeys(("WORLD_SIZE", "LOCAL_WORLD_SIZE"), str(count))
        return {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), SHARDS: "1"} | own | both

    before = {name: os.environ[name] for name in variables(0) if name in os.environ}
    with contextlib.ExitStack() as stack:
        outputs = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(1, count)]
        others = [
            subprocess.Popen(
                [sys.executable, "-m", "mamushi", *words],
                env=os.environ | variables(rank),
                # Held open by this process alone: see `watch`.
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                # Whoever presses ^C means the first one, which tells the others.
                start_new_session=True,
            )
            for rank, output in enumerate(outputs, start=1)
        ]
        os.environ.update(variables(0))
        done = threading.Event()
        threading.Thread(target=_guard, args=(others, outputs, done), daemon=True).start()
        try:
            yield
            for other in others:
                other.wait()
        finally:
            done.set()
            for other in others:
                other.kill()
                other.communicate()
            for name in variables(0):
                os.environ.pop(name)
            os.environ.update(before)


def _guard(
    others: Sequence[subprocess.Popen[bytes]], outputs: Sequence[IO[bytes]], done: threading.Event
) -> None:
    """End this process, which may wait for another one for ever, when that one has failed."""
    while not done.wait(0.5):
        for rank, (other, output) in enumerate(zip(others, outputs, strict=True), start=1):
            if not other.poll():
                continue
            # Mostly the first fails of the same, and says so.
            if done.wait(GRACE):
                return
            output.seek(0)
            text = output.read().decode(errors="replace").strip()
            print(f"{text}\nprocess {rank} failed", file=sys.stderr, flush=True)
            for each in others:
                each.kill()
            os._exit(other.returncode if other.returncode > 0 else 1)


def watch() -> None:
    """End this process when the first one has ended, be it by SIGKILL: then its input closes."""

    def wait() -> None:
        while sys.stdin.buffer.read(1):
            time.sleep(0)
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
