"""What a run will take: time of processors and GPUs, wall time, memory and disk, by rule.

From past jobs that are alike where there are any, else from floating-point operations and the rate
of a GPU, or from sizes and that of a processor; which of them is said for every rule.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from mamushi.configuration import grid
from mamushi.configuration.grid import Config
from mamushi.errors import UserError
from mamushi_runs.forecast.graph import CORES, QUEUE, Graph, Job
from mamushi_runs.forecast.history import History, Measured
from mamushi_runs.forecast.memory import LINK, exchange, needed, resident
from mamushi_runs.forecast.rates import CPU, Rate
from mamushi_runs.forecast.sizes import Size
from mamushi_runs.forecast.volumes import Volumes
from mamushi_runs.forecast.work import MODEL_RULES, SIZED, SMALL_FILE, TRAINING, Costs, Work

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


@dataclass(frozen=True)
class Estimate:
    """What one job is expected to take."""

    wall: float
    cpu: float
    source: str
    runs: tuple[Measured, ...] = ()
    """The past jobs that it is from."""


class Forecaster:
    """Estimates jobs of a configuration from the past jobs of ``history``, else by counting."""

    def __init__(self, costs: Costs, rate: Rate, history: History) -> None:
        self.costs, self.rate, self.history = costs, rate, history
        self._found: dict[tuple[str, ...], tuple[Estimate, Work, float]] = {}

    def of(self, job: Job) -> tuple[Estimate, Work, float]:
        """What a job takes, what it does, and the bytes of its outputs."""
        # Seeds, which are many, take the same.
        given = (f"{name}={value}" for name, value in job.wildcards.items() if name != "seed")
        key = (job.rule, *given)
        if key not in self._found:
            known, counted = self.known(job), self.counted(job)
            work, written = Work(), float(SMALL_FILE * len(job.outputs))
            if known is not None:
                work = self.costs.of(known, job.wildcards)
                sizes = (self.costs.output(known, path, job.wildcards) for path in job.outputs)
                written = sum(sizes)
            self._found[key] = self._measured(job, counted) or counted, work, written
        return self._found[key]

    def known(self, job: Job) -> str | None:
        """Our name of the job's rule; None where another workflow's rule happens to be called
        alike, and is of something else, or where it is of what is not configured any more."""
        config, given = self.costs.config, job.wildcards
        for wildcard in ("model", "dataset", "selector", "unlearner"):
            if wildcard in given and given[wildcard] not in config[f"{wildcard}s"]:
                return None
        if job.known in MODEL_RULES and not {"model", "dataset"} <= given.keys():
            return None
        return job.known

    def tiny(self, job: Job) -> bool:
        """Whether the job's model is built here, and small enough for a processor."""
        config, model = self.costs.config, job.wildcards.get("model")
        return model is not None and model in config["models"] and grid.is_tiny(config, model)

    def counted(self, job: Job) -> Estimate:
        """What a job takes by operations and sizes."""
        known = self.known(job)
        if known is None:
            return Estimate(FOREIGN, FOREIGN, "assumed: a minute")
        work = self.costs.of(known, job.wildcards)
        if job.gpus and not self.tiny(job):
            # The share of the peak is of whole fine-tunes: the optimizer's steps are within.
            wall = GPU_START + work.seconds + work.flop / self.rate.flops / job.gpus
            wall += work.steps * self._exchange(job)
            return Estimate(wall, wall, f"FLOP on {self.rate.key}" if work.flop else "assumed")
        if work.flop or job.gpus:
            # A tiny model.
            cpu = CPU["start"] + work.flop / CPU["tiny"] + work.steps * CPU["step"]
            return Estimate(cpu, cpu, "FLOP on a CPU core")
        source = "size, on a CPU core" if known in SIZED else "assumed"
        return Estimate(work.seconds / min(work.parts, job.threads), work.seconds, source)

    def _exchange(self, job: Job) -> float:
        """Seconds of a step in which several GPUs give each other their shares of the model."""
        model = job.wildcards.get("model")
        if job.gpus == 1 or model not in self.costs.config["models"]:
            return 0.0
        training = self.costs.config["models"][model]["training"]
        return exchange(self.costs.size(model), training, job.gpus)

    def _measured(self, job: Job, counted: Estimate) -> Estimate | None:
        """From past jobs, each scaled by what it and this job are counted at."""
        rules = {job.rule: job.known}
        if job.known in TRAINING:
            # The same engine on other texts, under the name that the workflow gives it.
            prefix = job.rule.removesuffix(job.known)
            rules |= {prefix + other: other for other in TRAINING}
        runs, scales = [], []
        for run in self.history.of(rules, job.wildcards):
            there = replace(job, rule=run.rule, known=rules[run.rule], wildcards=run.wildcards)
            if self.known(there) == there.known:
                runs.append(run)
                scales.append(counted.wall / self.counted(there).wall)
        if not runs:
            return None
        wall = median(run.used.wall * scale for run, scale in zip(runs, scales, strict=True))
        cpu = median(run.used.cpu * scale for run, scale in zip(runs, scales, strict=True))
        exact = all(0.99 < scale < 1.01 for scale in scales)
        return Estimate(wall, cpu, "measured" if exact else "measured, scaled", tuple(runs))


def forecast(
    graph: Graph, config: Config, rate: Rate, *, root: str | os.PathLike[str] = ".", own: float = 5
) -> dict[str, Any]:
    """The forecast of a run, as JSON can hold it: totals, and the same by rule.

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
        memory = [run.used.memory_mb for run in estimate.runs]
        entry = rules.setdefault(job.rule, {name: 0 for name in SUMS} | {"sources": Counter()})
        for name, more in zip(
            SUMS, (1, estimate.wall * job.gpus * counts, estimate.cpu, estimate.wall), strict=True
        ):
            entry[name] += more
        largest = max(memory, default=job.memory_mb or 0.0)
        entry["memory_mb"] = max(entry.get("memory_mb", 0.0), largest)
        entry["measured"] = entry.get("measured", True) and bool(memory)
        entry["sources"][estimate.source] += 1
        entry.setdefault("runs", set()).update((run.day, run.path) for run in estimate.runs)
    files = set().union(*(entry["runs"] for entry in rules.values()))
    for entry in rules.values():
        entry["runs"] = [len(entry["runs"]), max(entry["runs"], default=("",))[0]]
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
        "past_jobs": len(files),
        "rules": rules,
        "more": any(job.known == "refine" for job in graph.jobs),
        "about": _about(graph, forecaster),
    }


def _about(graph: Graph, forecaster: Forecaster) -> list[str]:
    """Sentences on the machine that is spoken of, the models and the datasets."""
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
                found.append(cut(costs.config, model, count, size))
    for name in sorted({job.wildcards.get("dataset", "") for job in graph.jobs}):
        if name in costs.config["datasets"]:
            texts = f"{costs.volumes.all_texts(name):,.0f} texts"
            found.append(f"{name}: {texts}, {costs.volumes.source(name)}.")
    return found


def cut(config: Config, model: str, count: int, size: Size) -> str:
    """A sentence on the memory of each of the GPUs over which a model is cut."""
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
    """Whether this machine has one: by the device files of the drivers."""
    return any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/kfd").exists()
