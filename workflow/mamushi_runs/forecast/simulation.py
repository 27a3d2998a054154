"""When each job runs, if jobs take as long as they are expected to: list scheduling of a graph.

As Snakemake does it: whenever something is free, the ready job of the highest priority that fits
starts. Nothing is kept free for a larger one.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from mamushi.errors import UserError
from mamushi_runs.forecast.graph import Job, Limits


@dataclass(frozen=True)
class Schedule:
    """Seconds from the start of the run."""

    start: list[float]
    end: list[float]
    """Of each job."""
    critical: float
    """The longest chain of jobs: no parallelism makes a run shorter."""

    @property
    def wall(self) -> float:
        return max(self.end, default=0.0)


def schedule(jobs: Sequence[Job], seconds: Sequence[float], limits: Limits) -> Schedule:
    """The times of ``jobs``, of which each takes its ``seconds``, within ``limits``.

    Jobs come after those that they need. One that asks for more than there is takes all there is.
    Raises ``UserError`` where GPUs are needed and 0 allowed.
    """
    if limits.gpus == 0 and any(job.gpus for job in jobs):
        raise UserError("there are jobs that need a GPU", where="--gpus 0", do="give 1 or more")
    after: list[list[int]] = [[] for _ in jobs]
    left = [len(job.needs) for job in jobs]
    for number, job in enumerate(jobs):
        for before in job.needs:
            after[before].append(number)
    chain = [0.0] * len(jobs)
    for number, job in enumerate(jobs):
        chain[number] = seconds[number] + max((chain[b] for b in job.needs), default=0.0)
    # Jobs that ask for the same wait in one queue, so that an end looks at few of thousands.
    queues: dict[tuple[float, ...], list[tuple[int, int]]] = {}
    asked = [_asked(job, limits) for job in jobs]
    free = [*map(_large, (limits.cores, limits.gpus, limits.jobs, limits.memory_mb))]
    start, end = [0.0] * len(jobs), [0.0] * len(jobs)
    running: list[tuple[float, int]] = []

    def wait(number: int) -> None:
        heapq.heappush(queues.setdefault(asked[number], []), (-jobs[number].priority, number))

    def begin(now: float) -> None:
        while True:
            fits = [
                (queue[0], need)
                for need, queue in queues.items()
                if queue and all(n <= f for n, f in zip(need, free, strict=True))
            ]
            if not fits:
                return
            (_, number), need = min(fits)
            heapq.heappop(queues[need])
            for place, amount in enumerate(need):
                free[place] -= amount
            start[number], end[number] = now, now + seconds[number]
            heapq.heappush(running, (end[number], number))

    for number in range(len(jobs)):
        if not left[number]:
            wait(number)
    begin(0.0)
    while running:
        now, number = heapq.heappop(running)
        ended = [number]
        # All that end at the same time, before any other starts.
        while running and running[0][0] == now:
            ended.append(heapq.heappop(running)[1])
        for number in ended:
            for place, amount in enumerate(asked[number]):
                free[place] += amount
            for later in after[number]:
                left[later] -= 1
                if not left[later]:
                    wait(later)
        begin(now)
    return Schedule(start, end, max(chain, default=0.0))


def _large(limit: float | None) -> float:
    return float("inf") if limit is None else float(limit)


def _asked(job: Job, limits: Limits) -> tuple[float, ...]:
    """Cores, GPUs, places in a cluster's queue and memory that a job takes, at most all of it."""
    here = job.local or not limits.cluster
    cores = min(job.threads, _large(limits.cores)) if here else 0
    gpus = min(job.gpus, _large(limits.gpus))
    memory = min(job.memory_mb or 0.0, _large(limits.memory_mb)) if here else 0
    return float(cores), float(gpus), 0.0 if here else 1.0, float(memory)


def peak(times: Sequence[tuple[float, float]]) -> float:
    """The largest sum of ``(time, change)`` over time; at one time, falls come before rises."""
    level = top = 0.0
    for _, change in sorted(times):
        level += change
        top = max(top, level)
    return top
