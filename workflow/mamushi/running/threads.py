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
    use_workers(int(limit) if limit.isdecimal() else cores())


def use_workers(number: int) -> None:
    """Compute at most ``number`` parts at a time from now on."""
    os.environ[WORKERS] = str(number)


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
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    names = (*LIMITS, WORKERS, VISIBLE)
    inherited = {name: os.environ[name] for name in names if name in os.environ}
    torch = sys.modules.get("torch")
    threads = torch.get_num_threads() if torch else cores()
    # For what is imported within the block.
    os.environ.update(dict.fromkeys(LIMITS, "1") | ({} if gpu else {VISIBLE: ""}))
    use_workers(cores())
    _one_for_torch()
    try:
        with threadpool_limits(limits=1):
            yield
    finally:
        for name in names:
            os.environ.pop(name, None)
        os.environ.update(inherited)
        if torch := sys.modules.get("torch"):
            torch.set_num_threads(threads)
