"""The threads of a command: one for arithmetic, and the cores for parts that are independent.

How many threads share a sum decides the order in which it adds up, hence its last bits, which the
training of a network carries into the ranking. So arithmetic has one thread, and what falls into
independent parts (the networks of a selector) computes them side by side, to the same bits.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from mamushi.running.machine import cores

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
    given = os.environ.get(LIMITS[0], "")
    os.environ.update(dict.fromkeys(LIMITS, "1"))
    use_workers(int(given) if given.isdecimal() else cores())


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
    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(compute, parts)
