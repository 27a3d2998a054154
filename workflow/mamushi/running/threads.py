"""The threads of a command: one for arithmetic, and the cores for parts that are independent.

How many threads share a sum decides the order in which it adds up, hence its last bits, which the
training of a network carries into the ranking. So arithmetic has one thread, and what falls into
independent parts (the networks of a selector) computes them side by side, to the same bits.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from mamushi.running.machine import VISIBLE, cores

Part = TypeVar("Part")
Result = TypeVar("Result")

LIMITS = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"),
    *("VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS"),
)
"""Variables in which numpy, torch and scikit-learn look for a number of threads."""
WORKERS = "MAMUSHI_WORKERS"
"""Variable that says how many independent parts are computed at a time."""


def one_for_arithmetic() -> None:
    """Give each operation of numpy and torch one thread, before they are imported, and this process
    as many workers as ``OMP_NUM_THREADS`` allowed threads, else one per core."""
    limit = os.environ.get(LIMITS[0], "")
    os.environ.update(dict.fromkeys(LIMITS, "1"))
    os.environ[WORKERS] = limit if limit.isdecimal() else str(cores())


def side_by_side(compute: Callable[[Part], Result], parts: Sequence[Part]) -> Iterator[Result]:
    """Yield ``compute`` of each part, in their order, as many at a time as there are workers.
    ``compute`` is called in threads, and has to hold no state that two parts share."""
    workers = min(int(os.environ.get(WORKERS, "1")), len(parts))
    if workers < 2:
        # In this thread, which an interruption ends at once.
        yield from map(compute, parts)
        return
    with ThreadPoolExecutor(workers, initializer=_one_for_torch) as pool:
        yield from pool.map(compute, parts)


def _one_for_torch() -> None:
    """Give torch one thread in a new thread, which does not take that over from the one before."""
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)


@contextmanager
def as_in_a_command(gpu: bool = False) -> Iterator[None]:
    """Compute within the block as the command of a stage does, to the same bits, in a process that
    has numpy and torch with threads of their own: with one for arithmetic, a worker for each core,
    and a GPU only if ``gpu``."""
    import numpy  # noqa: F401
    import torch
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    changes = {WORKERS: str(cores())} | ({} if gpu else {VISIBLE: ""})
    inherited = {name: os.environ.get(name) for name in changes}
    threads = torch.get_num_threads()
    os.environ.update(changes)
    torch.set_num_threads(1)
    try:
        with threadpool_limits(limits=1):
            yield
    finally:
        torch.set_num_threads(threads)
        for name, value in inherited.items():
            os.environ.pop(name)
            os.environ.update({} if value is None else {name: value})
