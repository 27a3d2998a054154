"""Several processes for one job, one for each of its GPUs, over which a model is sharded.

torch's own launcher starts them, and ends all when one fails. The command itself is none of them:
it holds claims and leases, is known to Snakemake and SLURM, and passes their signals on. Where it
is killed, the kernel tells the processes (torch asks for that), and they end at their next step.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

from mamushi.running.interruption import handled

SHARDS = "MAMUSHI_SHARDS"
"""Set in the processes of such a job: what several processes do otherwise is share the texts."""
GRACE_SECONDS = 60.0
"""For which the others may go on once a process has failed: one may write the state."""
GPUS = "MAMUSHI_GPUS"
"""JSON: of each model whose jobs take several GPUs, how many; as the workflow has counted."""


def process_count(model_card: Path | None) -> int:
    """Return the processes for a job with the model of this card: 1 but for one that is to be
    sharded. The model's name is that of the card's folder."""
    if model_card is None:
        return 1
    return int(json.loads(os.environ.get(GPUS, "{}")).get(model_card.parent.name, 1))


def is_secondary() -> bool:
    """Return whether this is a process beside the first of a job."""
    return int(os.environ.get("RANK", "0")) > 0


def run(count: int, words: Sequence[str], main: Callable[[Sequence[str]], int]) -> int:
    """Run ``main`` with these words in ``count`` processes that share a model. Returns the exit
    status: 0, or that of the first process that failed."""
    from torch.multiprocessing.spawn import ProcessExitedException, spawn

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = spawn(_process, (count, port, list(words), main), nprocs=count, join=False)

    def pass_on(number: int, _: object) -> None:
        for process in context.processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, number)

    try:
        with handled(pass_on):
            while not context.join(grace_period=GRACE_SECONDS):
                continue
    except ProcessExitedException as error:
        return error.exit_code if error.exit_code > 0 else 128 - error.exit_code
    return 0


def _process(
    rank: int, count: int, port: int, words: list[str], main: Callable[[Sequence[str]], int]
) -> None:
    """Run the command as one of ``count`` processes, and end this one with its status."""
    os.environ |= {
        **dict.fromkeys(("RANK", "LOCAL_RANK"), str(rank)),
        **dict.fromkeys(("WORLD_SIZE", "LOCAL_WORLD_SIZE"), str(count)),
        **{"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), SHARDS: "1"},
    }
    raise SystemExit(main(words))
