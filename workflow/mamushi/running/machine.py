"""What a number is computed on, where its last bits may depend on that.

How many threads share a sum decides the order in which it adds up, hence its last bits, which the
training of a network carries into the ranking. So arithmetic has one thread, and what falls into
independent parts (the networks of a selector) computes them side by side, to the same bits.
"""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from mamushi.errors import UserError
from mamushi.io.files import read_json

Part = TypeVar("Part")
Result = TypeVar("Result")

LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
"""Variables in which numpy, torch and scikit-learn look for a number of threads."""
WORKERS = "MAMUSHI_WORKERS"
"""Variable that says how many independent parts are computed at a time."""
TINY = 5e7
"""Parameters up to which a model is as well off on a processor: those of tests and demos."""
VISIBLE = "CUDA_VISIBLE_DEVICES"


@contextlib.contextmanager
def set_variables(**values: str) -> Iterator[None]:
    """Give the environment of this process these variables within the block."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            del os.environ[name]
            os.environ.update({} if value is None else {name: value})


def sees_gpu() -> bool:
    """Tell whether this process has a GPU. torch, which remembers for good what it has seen, is not
    asked where none is to be seen."""
    import torch

    return os.environ.get(VISIBLE) != "" and torch.cuda.is_available()


def require_cuda(gpus: Sequence[str], card: Path | None) -> None:
    """Raise ``UserError`` where this job holds ``gpus`` that PyTorch cannot use, and its model is
    not ``TINY``. On a processor it would take days, while the GPU is paid for and idle."""
    import torch

    if gpus and card and not torch.cuda.is_available() and read_json(card)["parameters"] > TINY:
        built = torch.version.cuda or torch.version.hip or "CPUs alone"
        torch_here = f"PyTorch {torch.__version__}, built for {built}"
        problem = f"this job holds GPU {','.join(gpus)}, which {torch_here} cannot use"
        do = "install one that suits the driver in `nvidia-smi`, or set execution.device to cpu"
        raise UserError(problem, do=do)


def limit_threads() -> None:
    """Give each operation of numpy and torch one thread, before they are imported, and this process
    as many workers as ``OMP_NUM_THREADS`` allowed threads, else one per core."""
    limit = os.environ.get(LIMITS[0], "")
    os.environ.update(dict.fromkeys(LIMITS, "1"))
    os.environ[WORKERS] = limit if limit.isdecimal() else str(len(os.sched_getaffinity(0)))


def side_by_side(compute: Callable[[Part], Result], items: Sequence[Part]) -> Iterator[Result]:
    """Yield ``compute`` of each item, in their order, as many at a time as there are workers.
    ``compute`` is called in threads, and has to hold no state that two items share."""
    workers = min(int(os.environ.get(WORKERS, "1")), len(items))
    if workers < 2:
        # In this thread, which an interruption ends at once.
        yield from map(compute, items)
        return
    from concurrent.futures import ThreadPoolExecutor

    torch = sys.modules.get("torch")
    # A new thread does not take that over from the one before.
    one = (torch.set_num_threads, (1,)) if torch else (None, ())
    with ThreadPoolExecutor(workers, "", *one) as pool:
        yield from pool.map(compute, items)


@contextlib.contextmanager
def command_environment(gpu: bool = False) -> Iterator[None]:
    """Set up the block so that it computes the same bits as a stage's command, in a process in
    which numpy and torch have started threads: one thread for arithmetic, a worker for each core,
    and a GPU only if ``gpu``."""
    import numpy  # noqa: F401
    import torch
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    values = {WORKERS: str(len(os.sched_getaffinity(0))), **({} if gpu else {VISIBLE: ""})}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with set_variables(**values), threadpool_limits(limits=1):
            yield
    finally:
        torch.set_num_threads(threads)
