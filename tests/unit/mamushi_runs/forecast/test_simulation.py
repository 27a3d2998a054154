"""When jobs run: list scheduling of small graphs whose schedules can be made by hand."""

from __future__ import annotations

import random
from typing import Any

import pytest

from mamushi.errors import UserError
from mamushi_runs.forecast.graph import Job, Limits
from mamushi_runs.forecast.simulation import peak, schedule


def job(*needs: int, **options: Any) -> Job:
    return Job("rule", None, {}, None, (), needs, **options)


def test_independent_jobs_share_the_cores() -> None:
    plan = schedule([job()] * 5, [10.0] * 5, Limits(cores=2))
    assert plan.wall == 30.0
    assert plan.critical == 10.0


def test_a_chain_takes_its_sum_whatever_there_is() -> None:
    jobs = [job(), job(0), job(1)]
    plan = schedule(jobs, [1.0, 2.0, 3.0], Limits(cores=64))
    assert (plan.wall, plan.critical) == (6.0, 6.0)
    assert plan.start == [0.0, 1.0, 3.0]


def test_threads_fill_the_cores_and_are_scaled_down_to_them() -> None:
    jobs = [job(threads=3), job(threads=2), job(threads=1), job(threads=99)]
    plan = schedule(jobs, [4.0, 4.0, 4.0, 4.0], Limits(cores=4))
    # 3 + 1, then 2 and nothing beside it that fits, then all.
    assert plan.start == [0.0, 4.0, 0.0, 8.0]


def test_gpus_limit_the_jobs_that_need_them_alone() -> None:
    jobs = [job(gpus=1), job(gpus=1), job(gpus=1), job(), job()]
    plan = schedule(jobs, [10.0] * 5, Limits(cores=8, gpus=2))
    assert plan.start == [0.0, 0.0, 10.0, 0.0, 0.0]
    with pytest.raises(UserError, match="GPU"):
        schedule(jobs, [10.0] * 5, Limits(cores=8, gpus=0))


def test_a_cluster_counts_jobs_and_keeps_local_ones_here() -> None:
    jobs = [job(threads=8) for _ in range(4)] + [job(local=True) for _ in range(4)]
    plan = schedule(jobs, [10.0] * 8, Limits(cores=1, jobs=2, cluster=True))
    assert plan.wall == 40.0
    assert sorted(plan.start[:4]) == [0.0, 0.0, 10.0, 10.0]
    assert sorted(plan.start[4:]) == [0.0, 10.0, 20.0, 30.0]
    unlimited = schedule(jobs[:4], [10.0] * 4, Limits(cores=1, jobs=None, cluster=True))
    assert unlimited.wall == 10.0


def test_priority_goes_first() -> None:
    jobs = [job(), job(priority=100), job()]
    plan = schedule(jobs, [5.0, 5.0, 5.0], Limits(cores=1))
    assert plan.start == [5.0, 0.0, 10.0]


def test_memory_of_the_machine_is_kept() -> None:
    jobs = [job(memory_mb=600.0) for _ in range(3)]
    assert schedule(jobs, [1.0] * 3, Limits(cores=8, memory_mb=1000)).wall == 3.0
    assert schedule(jobs, [1.0] * 3, Limits(cores=8)).wall == 1.0


def test_any_graph_is_scheduled_within_its_bounds() -> None:
    """Whatever the graph: all jobs run, after those that they need, and no more at a time than
    allowed; and the time lies between the two classical bounds."""
    for seed in range(30):
        draw = random.Random(seed)
        count, gpus = draw.randint(1, 60), draw.randint(1, 4)
        jobs = [
            job(
                *draw.sample(range(number), min(number, draw.randint(0, 3))),
                gpus=1,
                priority=draw.randint(0, 2),
            )
            for number in range(count)
        ]
        seconds = [draw.choice([0.0, 1.0, draw.random()]) for _ in range(count)]
        plan = schedule(jobs, seconds, Limits(cores=100, gpus=gpus))
        for number, one in enumerate(jobs):
            assert plan.end[number] == plan.start[number] + seconds[number]
            assert all(plan.end[before] <= plan.start[number] for before in one.needs)
        busy = [
            (t, s) for a, b in zip(plan.start, plan.end, strict=True) for t, s in ((a, 1), (b, -1))
        ]
        assert peak(busy) <= gpus
        share = sum(seconds) / gpus
        assert max(share, plan.critical) - 1e-9 <= plan.wall <= share + plan.critical + 1e-9


def test_five_thousand_jobs_take_a_fraction_of_a_second() -> None:
    import time

    jobs = [job(*([number % 50] if number >= 50 else []), gpus=1) for number in range(5000)]
    began = time.process_time()
    plan = schedule(jobs, [1.0 + number % 7 for number in range(5000)], Limits(cores=9, gpus=8))
    assert time.process_time() - began < 1.0
    assert plan.wall > 0


def test_the_peak_of_changes_in_any_order() -> None:
    assert peak([(2.0, -5.0), (0.0, 5.0), (2.0, 5.0), (3.0, 1.0)]) == 6.0
    assert peak([]) == 0.0
