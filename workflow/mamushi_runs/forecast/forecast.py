"""Forecast of a run: time of processors and GPUs, wall time, memory and disk, by rule.

From past jobs that are alike where there are any, else from floating-point operations and the rate
of a GPU, or from sizes and that of a processor; which of them is said for every rule.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from mamushi.configuration import grid
from mamushi.configuration.grid import Config
from mamushi.errors import UserError
from mamushi_runs.forecast.graph import CORES, QUEUE, Graph, Job
from mamushi_runs.forecast.history import History, Past
from mamushi_runs.forecast.memory import LINK, exchange, needed, resident
from mamushi_runs.forecast.rates import CPU, Rate
from mamushi_runs.forecast.sizes import Size
from mamushi_runs.forecast.volumes import Volumes
from mamushi_runs.forecast.work import MODEL_RULES, SIZED, SMALL_FILE, Costs, Work

GPU_START = 35.0
"""Seconds until a job has imported its libraries, started the GPU and read the weights."""
CHAIN = "chain"
SUMS = ("jobs", "gpu_seconds", "cpu_seconds", "wall_seconds")
FOREIGN = 60.0
"""Seconds of a job of which nothing is known."""
LATENCY, REMOTE_CPU = 40.0, 6.0
"""Seconds by which a job on a cluster takes longer (submission, an idle queue, noticing its end),
and processor seconds of Snakemake itself within it."""
LOCAL_WALL, LOCAL_CPU = 0.1, 0.2
"""The same for a job on this machine: starting it, looking at its files, writing them down."""


class Estimate(NamedTuple):
    """Seconds that one job is expected to take, and what that is from."""

    wall: float
    cpu: float
    source: str
    past: tuple[Past, ...] = ()
    """The past jobs that it is from."""


class Forecaster:
    """Estimates jobs of a configuration from the past jobs of ``history``, else by counting."""

    def __init__(self, costs: Costs, rate: Rate, history: History) -> None:
        self.costs, self.rate, self.history = costs, rate, history
        self._found: dict[tuple[str, ...], tuple[Estimate, Work, float]] = {}

    def of(self, job: Job) -> tuple[Estimate, Work, float]:
        """Return what a job takes, its work, and the bytes of its outputs."""
        # Seeds, which are many, take the same.
        key = (job.rule, *(f"{k}={v}" for k, v in job.wildcards.items() if k != "seed"))
        if key not in self._found:
            known, counted = self.known(job), self.counted(job)
            work, written = Work(), float(SMALL_FILE * len(job.outputs))
            if known is not None:
                work = self.costs.of(known, job.wildcards)
                written = sum(self.costs.output(known, p, job.wildcards) for p in job.outputs)
            self._found[key] = self._measured(job, counted) or counted, work, written
        return self._found[key]

    def known(self, job: Job) -> str | None:
        """Return our name of the job's rule.

        None where another workflow's rule is called alike, and is of something else.
        """
        config, given = self.costs.config, job.wildcards
        for wildcard in ("model", "dataset", "selector", "unlearner"):
            if wildcard in given and given[wildcard] not in config[f"{wildcard}s"]:
                return None
        if job.known in MODEL_RULES and not {"model", "dataset"} <= given.keys():
            return None
        return job.known

    def tiny(self, job: Job) -> bool:
        """Return whether the job's model is small enough for a processor."""
        config, model = self.costs.config, job.wildcards.get("model")
        return model is not None and model in config["models"] and grid.is_tiny(config, model)

    def counted(self, job: Job) -> Estimate:
        """Estimate a job by operations and sizes."""
        known = self.known(job)
        if known is None:
            return Estimate(FOREIGN, FOREIGN, "assumed: a minute")
        work = self.costs.of(known, job.wildcards)
        if job.gpus and not self.tiny(job):
            # The share of the peak is of whole fine-tunes: the optimizer's steps are within.
            wall = GPU_START + work.seconds + work.flop / self.rate.flops / job.gpus
            model = job.wildcards.get("model")
            if job.gpus > 1 and model in self.costs.config["models"]:
                training = self.costs.config["models"][model]["training"]
                wall += work.steps * exchange(self.costs.size(model), training, job.gpus)
            return Estimate(wall, wall, f"FLOP on {self.rate.key}" if work.flop else "assumed")
        if work.flop or job.gpus:
            # A tiny model.
            cpu = CPU["start"] + work.flop / CPU["tiny"] + work.steps * CPU["step"]
            return Estimate(cpu, cpu, "FLOP on a CPU core")
        source = "size, on a CPU core" if known in SIZED else "assumed"
        return Estimate(work.seconds / min(work.parts, job.threads), work.seconds, source)

    def _measured(self, job: Job, counted: Estimate) -> Estimate | None:
        """Estimate from past jobs, each scaled by what it and this job are counted at."""
        past = tuple(self.history.of(job.rule, job.wildcards))
        if not past:
            return None
        then = (self.counted(replace(job, wildcards=each.wildcards)).wall for each in past)
        scales = [counted.wall / wall for wall in then]
        wall, cpu = (
            median(getattr(p.used, name) * scale for p, scale in zip(past, scales, strict=True))
            for name in ("wall", "cpu")
        )
        exact = all(0.99 < scale < 1.01 for scale in scales)
        return Estimate(wall, cpu, "measured" if exact else "measured, scaled", past)


def forecast(
    graph: Graph, config: Config, rate: Rate, *, root: str | os.PathLike[str] = ".", own: float = 5
) -> dict[str, Any]:
    """Return the forecast of a run, as JSON can hold it: totals, and the same by rule.

    Seconds and bytes; memory in MB. ``root`` is the folder with ``results``; ``own`` are processor
    seconds of Snakemake before the first job. Raises ``UserError`` where GPUs are needed and none
    is allowed.
    """
    if graph.limits.get("gpu") == 0 and any(job.gpus for job in graph.jobs):
        raise UserError("there are jobs that need a GPU", where="gpu: 0", do="allow 1 or more")
    costs = Costs(config, Volumes(config, root))
    forecaster = Forecaster(costs, rate, History(graph.patterns, root))
    rules: dict[str, dict[str, Any]] = {}
    chain: list[float] = []
    past: set[Path] = set()
    busy = dict.fromkeys(graph.limits, 0.0)
    end = kept = checkpoint = 0.0
    for job in graph.jobs:
        estimate, work, written = forecaster.of(job)
        remote = graph.cluster and not job.uses.get(CORES)
        own += REMOTE_CPU if remote else LOCAL_CPU
        taken = estimate.wall + (LATENCY if remote else LOCAL_WALL)
        chain.append(taken + max((chain[before] for before in job.needs), default=0.0))
        for name, limit in graph.limits.items():
            # A job that asks for more than there is takes all there is.
            busy[name] += taken * min(job.uses.get(name, 0.0) / limit, 1.0)
        end, kept, checkpoint = end + written, kept + work.kept, max(checkpoint, work.state)
        # A tiny model makes do without a GPU on a machine that counts none.
        counts = graph.cluster or "gpu" in graph.limits or not forecaster.tiny(job)
        _add(rules, job, estimate, estimate.wall * job.gpus * counts)
    for entry in rules.values():
        past |= entry["past"]
        entry["past"] = len(entry["past"])
    bounds = {CHAIN: max(chain, default=0.0), **busy}
    bound = max(bounds, key=bounds.__getitem__)
    # Training jobs hold a GPU each, on a cluster a place in the queue.
    places = [graph.limits.get(name) for name in ("gpu", QUEUE if graph.cluster else CORES)]
    width = min([len(graph.jobs), *(place for place in places if place is not None)])
    return {
        "jobs": len(graph.jobs),
        "gpu_seconds": sum(entry["gpu_seconds"] for entry in rules.values()),
        "cpu_seconds": own + sum(entry["cpu_seconds"] for entry in rules.values()),
        "wall_seconds": bounds[bound],
        "bound": [bound, graph.limits.get(bound)],
        "critical_seconds": bounds[CHAIN],
        "memory_mb": max((entry["memory_mb"] for entry in rules.values()), default=0.0),
        "disk": {
            "end": end + (kept if config["keep_checkpoints"] else 0.0),
            "end_kept": end + kept,
            # The last checkpoint of each running job, and the next while it is written.
            "running": 2 * width * checkpoint,
        },
        "rate": rate.source,
        "past_jobs": len(past),
        "rules": rules,
        "more": any(job.known == "refine" for job in graph.jobs),
        "about": _about(graph, forecaster),
    }


def _add(
    rules: dict[str, dict[str, Any]], job: Job, estimate: Estimate, gpu_seconds: float
) -> None:
    """Add what a job takes to that of its rule."""
    start = {**dict.fromkeys(SUMS, 0), "memory_mb": 0.0, "measured": True}
    entry = rules.setdefault(job.rule, start | {"past": set(), "sources": Counter()})
    for name, more in zip(SUMS, (1, gpu_seconds, estimate.cpu, estimate.wall), strict=True):
        entry[name] += more
    memory = [each.used.memory_mb for each in estimate.past]
    entry["memory_mb"] = max(entry["memory_mb"], *(memory or [job.memory_mb or 0.0]))
    entry["measured"] &= bool(memory)
    entry["sources"][estimate.source] += 1
    entry["past"].update(each.path for each in estimate.past)


def _about(graph: Graph, forecaster: Forecaster) -> list[str]:
    """Return sentences on the machine that is spoken of, the models and the datasets."""
    costs, found = forecaster.costs, []
    tiny = {forecaster.tiny(job) for job in graph.jobs if job.gpus}
    if False in tiny:
        here = "" if graph.cluster or has_gpu() else "; this machine has no GPU that they could use"
        found.append(f"GPU rules are counted for an {forecaster.rate.name}{here}.")
    if True in tiny:
        found.append("GPU rules of tiny models are counted for one core of a CPU.")
    for model in sorted({job.wildcards.get("model", "") for job in graph.jobs}):
        if model in costs.config["models"]:
            size = costs.size(model)
            found.append(f"{model}: {size.parameters / 1e9:.3g} billion parameters, {size.source}.")
            count = max(job.gpus for job in graph.jobs if job.wildcards.get("model") == model)
            if count > 1:
                found.append(_split(costs.config, model, count, size))
    for name in sorted({job.wildcards.get("dataset", "") for job in graph.jobs}):
        if name in costs.config["datasets"]:
            texts = f"{costs.volumes.all_texts(name):,.0f} texts"
            found.append(f"{name}: {texts}, {costs.volumes.source(name)}.")
    return found


def _split(config: Config, model: str, count: int, size: Size) -> str:
    """Return a sentence on the memory of each of the GPUs over which a model is split."""
    training, has = config["models"][model]["training"], config["execution"]["gpu_memory"]
    kept, most = (f(size, training, count) / 1e9 for f in (resident, needed))
    less = ": too little" if most > has else ""
    return (
        f"{model}: cut over {count} GPUs, {kept:.0f} GB on each for its weights, gradients and "
        f"moments, up to {most:.0f} GB in a step before activations, of {has:.0f} GB{less}; "
        f"{exchange(size, training, count):.1f} s of each step to exchange them at "
        f"{LINK / 1e9:.0f} GB/s, assumed."
    )


def has_gpu() -> bool:
    """Return whether this machine has a GPU, by the device files of the drivers."""
    return any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/kfd").exists()
