"""What a run will take: time of processors and GPUs, wall time, memory and disk, by rule.

From benchmarks of past jobs that are alike where there are any, else from floating-point operations
and the rate of a GPU; which of them is said for every rule.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from mamushi.configuration.grid import Config
from mamushi_runs.forecast.benchmarks import History
from mamushi_runs.forecast.graph import Graph, Job, Limits
from mamushi_runs.forecast.rates import Rate
from mamushi_runs.forecast.simulation import peak, schedule
from mamushi_runs.forecast.volumes import Volumes
from mamushi_runs.forecast.work import MODEL_RULES, SMALL_FILE, TRAINING, Costs, Work

GPU_START, READ = 30.0, 2e9
"""Seconds until a job has imported its libraries and started the GPU; bytes per second that it
reads of weights."""
CPU_START, CPU_RATE, CPU_STEP = 4.0, 2e10, 0.02
"""A tiny model on a processor: seconds to start, FLOP/s of its small products, seconds of a step
that are spent around them."""
FOREIGN = 60.0
"""Seconds of a job of which nothing is known."""
LATENCY = 40.0
"""Seconds by which a job on a cluster takes longer: submission, an idle queue, noticing its end."""
REMOTE_CPU = 6.0
"""Processor seconds of Snakemake itself within a job on a cluster."""


@dataclass(frozen=True)
class Overhead:
    """What Snakemake itself takes on top of the jobs."""

    cpu: float = 5.0
    """Processor seconds before the first job."""
    cpu_of_job: float = 0.2
    wall_of_job: float = 0.1
    """Seconds for each job on this machine: starting it, looking at its files, writing them down.
    A shell and what a benchmark did not see count here too."""


@dataclass(frozen=True)
class Estimate:
    """What one job is expected to take."""

    wall: float
    cpu: float
    rss_mb: float | None
    source: str


MEASURED, COUNTED, ASSUMED = "benchmarks", "FLOP", "assumed"


class Forecaster:
    """Estimates jobs of a configuration; ``history`` None takes no notice of benchmarks."""

    def __init__(self, costs: Costs, rate: Rate, history: History | None) -> None:
        self.costs, self.rate, self.history = costs, rate, history
        self._estimates: dict[tuple[str | None, ...], Estimate] = {}
        self._works: dict[tuple[str | None, ...], Work] = {}

    def known(self, job: Job) -> str | None:
        """Our name of the job's rule; None where another workflow's rule happens to be called
        alike, and is of something else."""
        config, given = self.costs.config, job.wildcards
        for name, wildcard in (("models", "model"), ("datasets", "dataset")):
            if wildcard in given and given[wildcard] not in config[name]:
                return None
        if job.known in MODEL_RULES and not {"model", "dataset"} <= given.keys():
            return None
        return job.known

    def work(self, job: Job) -> Work:
        """What a job computes; nothing that is known for a foreign rule."""
        key = job.key
        if key not in self._works:
            known = self.known(job)
            self._works[key] = Work() if known is None else self.costs.of(known, job.wildcards)
        return self._works[key]

    def written(self, job: Job) -> float:
        """Bytes of the job's outputs."""
        known = self.known(job)
        if known is None:
            return SMALL_FILE * len(job.outputs)
        return sum(self.costs.output(known, path, job.wildcards) for path in job.outputs)

    def on_gpu(self, job: Job, limits: Limits) -> bool:
        """Whether a job holds a GPU: one of a tiny model makes do without on a machine that
        counts none."""
        small = self.costs.tiny(job.model) and not limits.cluster and limits.gpus is None
        return job.gpus > 0 and not small

    def estimate(self, job: Job) -> Estimate:
        """What a job takes, from the best source that there is."""
        key = job.key
        if key not in self._estimates:
            self._estimates[key] = self._measured(job) or self._counted(job)
        return self._estimates[key]

    def _measured(self, job: Job) -> Estimate | None:
        if job.idle:
            return Estimate(0.0, 0.0, None, MEASURED)
        if self.history is None:
            return None
        past = self.history.of(job.rule, job.wildcards)
        if past is not None:
            scale = 1.0
            if past.dataset is not None:
                there = replace(job, wildcards={**job.wildcards, "dataset": past.dataset})
                scale = _ratio(self.work(job), self.work(there))
            source = f"{MEASURED}: {past.like}"
            return Estimate(past.wall * scale, past.cpu * scale, past.rss_mb, source)
        for sibling in TRAINING if job.known in TRAINING else ():
            # The same engine on other texts, under the name that the workflow gives it.
            prefix = job.rule.removesuffix(str(job.known))
            other = replace(job, rule=prefix + sibling, known=sibling)
            past = self.history.of(other.rule, other.wildcards)
            if past is not None and past.dataset is None:
                beta = {"beta": "0.50", **job.wildcards}
                scale = _ratio(self.work(job), self.work(replace(other, wildcards=beta)))
                source = f"{MEASURED}: {sibling}, scaled by FLOP"
                return Estimate(past.wall * scale, past.cpu * scale, past.rss_mb, source)
        return None

    def _counted(self, job: Job) -> Estimate:
        if self.known(job) is None:
            return Estimate(FOREIGN, FOREIGN, None, f"{ASSUMED}: a minute")
        work = self.work(job)
        small = self.costs.tiny(job.model)
        if job.gpus and not small:
            wall = self.gpu_seconds(work)
            return Estimate(wall, wall, None, COUNTED if work.flop else ASSUMED)
        if work.flop:
            wall = CPU_START + work.flop / CPU_RATE + work.steps * CPU_STEP
            return Estimate(wall, wall, None, f"{COUNTED} on a CPU")
        seconds = work.seconds or CPU_START
        return Estimate(seconds / min(job.threads, 8), seconds, None, ASSUMED)

    def gpu_seconds(self, work: Work) -> float:
        """Seconds of a job on the GPU."""
        rate = self.rate
        seconds = GPU_START + work.weights / READ + work.seconds
        if rate.padded:
            # The share is of whole fine-tunes, the optimizer's steps within.
            return seconds + work.padded_flop / (rate.peak * rate.share)
        return seconds + work.flop / (rate.peak * rate.share) + work.traffic / rate.bandwidth


def _run(job: Job) -> tuple[str | None, ...]:
    """Dataset, model and seed."""
    return tuple(job.wildcards.get(name) for name in ("dataset", "model", "seed"))


def _ratio(mine: Work, theirs: Work) -> float:
    for name in ("padded_flop", "seconds"):
        one, other = getattr(mine, name), getattr(theirs, name)
        if one > 0 and other > 0:
            return float(one / other)
    return 1.0


def forecast(
    graph: Graph,
    config: Config,
    rate: Rate,
    *,
    root: str | os.PathLike[str] = ".",
    benchmarks: bool = True,
    overhead: Overhead | None = None,
) -> dict[str, Any]:
    """The forecast of a run, as JSON can hold it: totals, and the same by rule.

    Seconds and bytes; memory in MB. ``root`` is the folder with ``results``; without ``benchmarks``
    those that are there are not looked at.
    """
    overhead = overhead or Overhead()
    volumes = Volumes(config, root)
    costs = Costs(config, volumes)
    history = History(graph.patterns, root) if benchmarks else None
    forecaster = Forecaster(costs, rate, history)
    jobs, limits = graph.jobs, graph.limits
    estimates = [forecaster.estimate(job) for job in jobs]
    works = [forecaster.work(job) for job in jobs]
    makers = _trunk_makers(jobs, works)
    walls, cpus, waits, own = [], [], [], overhead.cpu
    for number, (job, estimate) in enumerate(zip(jobs, estimates, strict=True)):
        more = 0.0
        if number in makers and not estimate.source.startswith(MEASURED):
            trunk = Work(flop=works[number].trunk_flop, padded_flop=works[number].trunk_flop)
            small = costs.tiny(job.model)
            more = trunk.flop / CPU_RATE if small else forecaster.gpu_seconds(trunk) - GPU_START
        walls.append(estimate.wall + more)
        cpus.append(estimate.cpu + more)
        remote = limits.cluster and not job.local
        if not job.idle:
            own += REMOTE_CPU if remote else overhead.cpu_of_job
        waits.append(LATENCY if remote else 0.0 if job.idle else overhead.wall_of_job)
    plan = schedule(jobs, [a + b for a, b in zip(walls, waits, strict=True)], limits)
    held = [forecaster.on_gpu(job, limits) * job.gpus for job in jobs]
    rules = _by_rule(jobs, estimates, walls, cpus, held)
    memory = [
        (entry.rss_mb if entry.rss_mb is not None else job.memory_mb) or 0.0
        for job, entry in zip(jobs, estimates, strict=True)
    ]
    spans = list(zip(plan.start, plan.end, strict=True))
    models = sorted({job.model for job in jobs if job.model and job.model in config["models"]})
    return {
        "jobs": sum(not job.idle for job in jobs),
        "gpu_seconds": sum(rule["gpu_seconds"] for rule in rules.values()),
        "cpu_seconds": own + sum(cpus),
        "own_cpu_seconds": own,
        "wall_seconds": plan.wall,
        "critical_seconds": plan.critical,
        "memory_mb": max(memory, default=0.0) if limits.cluster else peak(_over(spans, memory)),
        "memory_of": "a job" if limits.cluster else "all that runs together",
        "gpus": peak(_over(spans, held)),
        "disk": _disk(graph, forecaster, works, spans, Path(root)),
        "limits": str(limits),
        "rate": str(rate),
        "benchmarks": history.files if history else 0,
        "rules": rules,
        "more": _adaptive(jobs, config, forecaster),
        "models": {model: _size(costs, model) for model in models},
        "datasets": _datasets(jobs, volumes),
    }


def _over(
    spans: Sequence[tuple[float, float]], amounts: Sequence[float]
) -> list[tuple[float, float]]:
    """The changes of what is in use, when each job takes its amount while it runs."""
    changes = [(start, amount) for (start, _), amount in zip(spans, amounts, strict=True)]
    return changes + [(end, -amount) for (_, end), amount in zip(spans, amounts, strict=True)]


def _trunk_makers(jobs: list[Job], works: list[Work]) -> set[int]:
    """Numbers of the jobs that make the cache of their run: the first of each."""
    first: dict[tuple[str | None, ...], int] = {}
    for number, (job, work) in enumerate(zip(jobs, works, strict=True)):
        if work.trunk_flop:
            first.setdefault(_run(job), number)
    return set(first.values())


def _by_rule(
    jobs: list[Job],
    estimates: list[Estimate],
    walls: list[float],
    cpus: list[float],
    held: list[int],
) -> dict[str, dict[str, Any]]:
    rules: dict[str, dict[str, Any]] = {}
    times: dict[str, list[float]] = {}
    sources: dict[str, Counter[str]] = {}
    for job, estimate, wall, cpu, gpus in zip(jobs, estimates, walls, cpus, held, strict=True):
        if job.idle:
            continue
        entry = rules.setdefault(
            job.rule,
            {
                **{"jobs": 0, "gpu_seconds": 0.0, "cpu_seconds": 0.0, "wall_seconds": 0.0},
                **{"memory_mb": 0.0, "measured": True},
            },
        )
        entry["jobs"] += 1
        entry["gpu_seconds"] += wall * gpus
        entry["cpu_seconds"] += cpu
        entry["wall_seconds"] += wall
        memory = job.memory_mb if estimate.rss_mb is None else estimate.rss_mb
        entry["memory_mb"] = max(entry["memory_mb"], memory or 0.0)
        entry["measured"] = entry["measured"] and estimate.rss_mb is not None
        times.setdefault(job.rule, []).append(wall)
        sources.setdefault(job.rule, Counter())[estimate.source] += 1
    for rule, entry in rules.items():
        entry["job_seconds"] = median(times[rule])
        entry["sources"] = dict(sources[rule].most_common())
    return rules


def _disk(
    graph: Graph,
    forecaster: Forecaster,
    works: list[Work],
    spans: list[tuple[float, float]],
    root: Path,
) -> dict[str, float]:
    """Bytes: outputs at the end, the peak while running, both also with ``keep_checkpoints``.

    A training job has two checkpoints at worst: the last one, and the next while it is written.
    Caches of hidden states are there until the last job of all has ended.
    """
    keeps = bool(forecaster.costs.config["keep_checkpoints"])
    there = 0.0
    for job, path in graph.there:
        try:
            there += (root / path).stat().st_size
        except OSError:
            there += forecaster.written(job)
    sizes: dict[tuple[str | None, ...], float] = {}
    passing: list[tuple[float, float]] = []
    trunks: dict[tuple[str | None, ...], tuple[float, float]] = {}
    ends: list[tuple[float, float]] = []
    kept: list[tuple[float, float]] = []
    for job, work, (start, end) in zip(graph.jobs, works, spans, strict=True):
        if job.idle:
            continue
        key = job.key
        if key not in sizes:
            # What `keep_checkpoints` adds stands among the outputs where the configuration asks.
            sizes[key] = forecaster.written(job) - (work.kept if keeps else 0.0)
        ends.append((end, sizes[key]))
        if work.kept:
            # Written while the checkpoint is still there.
            kept.append((start, work.kept))
        if work.state:
            passing += [(start, 2 * work.state), (end, -2 * work.state)]
        if work.trunk:
            trunks.setdefault(_run(job), (start, work.trunk))
    shared = list(trunks.values())
    return {
        "there": there,
        "end": there + sum(size for _, size in ends),
        "end_kept": there + sum(size for _, size in [*ends, *kept]),
        "peak": there + peak([*ends, *passing, *shared]),
        "peak_kept": there + peak([*ends, *passing, *shared, *kept]),
        "checkpoints": peak(passing),
        "trunks": sum(size for _, size in shared),
    }


def _adaptive(jobs: list[Job], config: Config, forecaster: Forecaster) -> dict[str, Any]:
    """Cells that a checkpoint may add once its sweep has run: at most so many, and their GPU time.

    It measures the multiples of ``fine`` between two neighbouring budgets, for every seed.
    """
    axes = config["unlearning"]
    pending = [job for job in jobs if job.known == "refine"]
    if not pending or axes["fine"] is None:
        return {"jobs": 0, "gpu_seconds": 0.0}
    edges = [0, *(round(100 * float(budget)) for budget in sorted(axes["budgets"])), 100]
    step = max(1, round(100 * float(axes["fine"])))
    inside = [len(range((low // step + 1) * step, high, step)) for low, high in pairwise(edges)]
    cells = max(inside) * len(axes["seeds"])
    seconds = 0.0
    for job in pending:
        cell = {**job.wildcards, "seed": str(axes["seeds"][0]), "beta": "0.50"}
        rule = job.rule.removesuffix("refine") + "unlearn"
        one = Job(rule, "unlearn", cell, None, (), (), gpus=1)
        seconds += cells * forecaster.estimate(one).wall
    return {"jobs": cells * len(pending), "gpu_seconds": seconds}


def _size(costs: Costs, model: str) -> str:
    size = costs.size(model)
    billions = f"{size.billions:.2f} billion" if size.billions >= 0.1 else f"{size.parameters:,}"
    return f"{billions} parameters, from {size.source}"


def _datasets(jobs: list[Job], volumes: Volumes) -> Mapping[str, str]:
    found = sorted({job.wildcards["dataset"] for job in jobs if "dataset" in job.wildcards})
    known = [name for name in found if name in volumes.config["datasets"]]
    return {
        name: f"{volumes.all_texts(name):,.0f} texts, from {volumes.source(name)}" for name in known
    }
