"""Forecast of a run, by rule: time of processors and GPUs, wall time, memory and disk.

From the jobs that Snakemake is about to start, counted in floating-point operations and the rate of
a GPU, or in sizes and that of a processor.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from mamushi.config import grid
from mamushi.config.grid import Config
from mamushi.errors import UserError
from mamushi_runs.forecast import rates, work
from mamushi_runs.forecast.rates import CPU, Rate
from mamushi_runs.forecast.sizes import LINK, exchange, needed, resident
from mamushi_runs.forecast.work import MODEL_RULES, SIZED, SMALL_FILE, Costs, Volumes, Work

CORES, QUEUE, CHAIN = "_cores", "_nodes", "chain"
"""Snakemake's words for two of its resources, and what else may bind a run."""
GPU_START = 35.0
"""Seconds until a job has imported its libraries, started the GPU and read the weights."""
FOREIGN = 60.0
"""Seconds of a job of which nothing is known."""
OWN = {True: (40.0, 6.0), False: (0.1, 0.2)}
"""Seconds, and processor seconds, that Snakemake adds to a job: on a cluster, with submission and
an idle queue, and on this machine."""


class Job(NamedTuple):
    """A job to do."""

    rule: str
    """As the workflow names it."""
    known: str | None
    """As we do; None for a rule of another workflow that imports this one."""
    wildcards: Mapping[str, str]
    outputs: tuple[str, ...] = ()
    needs: tuple[int, ...] = ()
    """Numbers of the jobs that come before it."""
    uses: Mapping[str, float] = {}
    """What it takes of each resource by name: of the machine, or of a cluster's queue."""
    gpus: int = 0
    threads: int = 1
    memory_mb: float = 0.0
    """Requested."""


class Graph(NamedTuple):
    """The jobs to do, each after those that it needs."""

    jobs: list[Job]
    limits: Mapping[str, int]
    """What of a resource may be in use at a time; one without a limit is not here."""
    cluster: bool = False
    gpu_model: str | None = None
    """As the profile asks for it."""


Cluster = tuple[int | None, int | None]
"""Jobs at a time, and cores for those that stay here, of a dry run, which is local itself."""


# The jobs of Snakemake ----------------------------------------------------------------------------


def read(workflow: Any, cluster: Cluster | None = None, gpus: int | None = None) -> Graph:
    """Return the jobs of ``workflow`` (Snakemake's), whose graph has been built; ``gpus`` in place
    of its own limit of GPUs at a time. What depends on rule and model alone is asked for once."""
    if cluster is None and not workflow.local_exec:
        cluster = workflow.nodes, workflow.resource_settings.local_cores
    limits = _limits(workflow, cluster) | ({} if gpus is None else {"gpu": gpus})
    dag = workflow.dag
    # Without targets, which run nothing.
    wanted = {job for job in dag.needrun_jobs() if not job.is_norun}
    order = [job for level in dag.toposorted(wanted) for job in level]
    number = {job: place for place, job in enumerate(order)}
    shared: dict[tuple[str, str | None], dict[str, Any]] = {}
    models: list[str] = []
    jobs = []
    for job in order:
        rule, wildcards = job.rule, dict(job.wildcards_dict)
        key = rule.name, wildcards.get("model")
        if key not in shared:
            asked = {name: n for name, n in job.resources.items() if isinstance(n, int | float)}
            count = int(asked.get("gpu", 0))
            if count and isinstance(job.resources.get("gpu_model"), str):
                models.append(job.resources["gpu_model"])
            # Snakemake's own word, is_local(), depends on the executor: a dry run's is local.
            stays = rule.group is None and rule.name in workflow._localrules
            remote = cluster is not None and not stays
            asked |= {CORES: 0, QUEUE: 1} if remote else {CORES: int(job.threads), QUEUE: 0}
            # Rules of one form have their stage among the parameters.
            words = str(rule.shellcmd or "").replace(
                "{params.stage}", f"{rule.params.get('stage')}"
            )
            stage = re.search(r"-m mamushi ([a-z-]+)", words)
            shared[key] = {
                "known": stage and (work.known(rule.name) or stage[1].replace("-", "_")),
                **{"gpus": count, "threads": int(job.threads)},
                "memory_mb": asked.get("mem_mb", 0.0),
                "uses": {name: float(asked.get(name, 0)) for name in limits},
            }
        outputs = tuple(map(str, job.output))
        needs = tuple(number[before] for before in dag.dependencies[job] if before in number)
        jobs.append(
            Job(rule.name, wildcards=wildcards, outputs=outputs, needs=needs, **shared[key])
        )
    return Graph(jobs, limits, cluster is not None, next(iter(models), None))


def _limits(workflow: Any, cluster: Cluster | None) -> dict[str, int]:
    """Return limits by resource. On a cluster, one of scope `local` is of a job or a pack of jobs,
    and binds nothing across the run."""
    given = {name: getattr(n, "value", n) for name, n in workflow.global_resources.items()}
    if cluster is not None:
        scopes = workflow.resource_scopes
        given = {name: n for name, n in given.items() if not scopes.is_local(name)}
        given |= {CORES: cluster[1] or os.cpu_count(), QUEUE: cluster[0]}
    else:
        given |= {CORES: given.get(CORES) or 1, QUEUE: None}
    # A large number stands for unlimited.
    return {name: n for name, n in given.items() if isinstance(n, int) and n < sys.maxsize}


# What they take -----------------------------------------------------------------------------------


class Estimate(NamedTuple):
    """What one job is expected to take."""

    wall: float
    cpu: float
    """Seconds."""
    source: str
    work: Work
    written: float
    """Bytes of its outputs."""


class Forecaster:
    """Estimates the jobs of a configuration."""

    def __init__(self, costs: Costs, rate: Rate) -> None:
        self.costs, self.rate = costs, rate
        self._found: dict[tuple[str, ...], Estimate] = {}

    def of(self, job: Job) -> Estimate:
        """Return what a job takes, counted once for all its seeds."""
        key = (job.rule, *(f"{k}={v}" for k, v in job.wildcards.items() if k != "seed"))
        if key not in self._found:
            self._found[key] = self._count(job)
        return self._found[key]

    def tiny(self, job: Job) -> bool:
        """Return whether the job's model is small enough for a processor."""
        config, model = self.costs.config, job.wildcards.get("model")
        return model is not None and model in config["models"] and grid.is_tiny(config, model)

    def _count(self, job: Job) -> Estimate:
        config, given = self.costs.config, job.wildcards
        named = ("model", "dataset", "selector", "unlearner")
        # Another workflow's rule may be called like ours, and be of something else.
        lacking = job.known in MODEL_RULES and not {"model", "dataset"} <= given.keys()
        unknown = any(given[w] not in config[f"{w}s"] for w in named if w in given)
        if job.known is None or lacking or unknown:
            written = float(SMALL_FILE * len(job.outputs))
            return Estimate(FOREIGN, FOREIGN, "assumed: a minute", Work(), written)
        work = self.costs.of(job.known, job.wildcards)
        written = sum(self.costs.output(job.known, p, job.wildcards) for p in job.outputs)
        if job.gpus and not self.tiny(job):
            # The share of the peak is of whole fine-tunes: the optimizer's steps are within.
            wall = GPU_START + work.seconds + work.flop / self.rate.flops / job.gpus
            if job.gpus > 1:
                training = config["models"][given["model"]]["training"]
                wall += work.steps * exchange(self.costs.size(given["model"]), training, job.gpus)
            source = f"FLOP on {self.rate.key}" if work.flop else "assumed"
            return Estimate(wall, wall, source, work, written)
        if work.flop or job.gpus:
            # A tiny model.
            cpu = CPU["start"] + work.flop / CPU["tiny"] + work.steps * CPU["step"]
            return Estimate(cpu, cpu, "FLOP on a CPU core", work, written)
        source = "size, on a CPU core" if job.known in SIZED else "assumed"
        wall = work.seconds / min(work.parts, job.threads)
        return Estimate(wall, work.seconds, source, work, written)


def forecast(
    graph: Graph, config: Config, rate: Rate | None = None, *, root: str = ".", own: float = 5
) -> dict[str, Any]:
    """Return the forecast of a run, as JSON can hold it: totals, and the same by rule. Seconds and
    bytes; memory in MB. ``rate`` is by default that of the profile's GPU, else of the paper's;
    ``root`` is the folder with ``results``; ``own`` are processor seconds of Snakemake before the
    first job. Raises ``UserError`` where GPUs are needed and none is allowed."""
    if graph.limits.get("gpu") == 0 and any(job.gpus for job in graph.jobs):
        raise UserError("there are jobs that need a GPU", where="gpu: 0", do="allow 1 or more")
    asked = graph.gpu_model if graph.gpu_model and rates.known(graph.gpu_model) else None
    rate = rate or rates.rate(asked)
    forecaster = Forecaster(Costs(config, Volumes(config, root)), rate)
    rules: dict[str, dict[str, Any]] = {}
    chain: list[float] = []
    busy = dict.fromkeys(graph.limits, 0.0)
    end = kept = checkpoint = 0.0
    for job in graph.jobs:
        found = forecaster.of(job)
        remote = graph.cluster and not job.uses.get(CORES)
        wall, cpu = OWN[bool(remote)]
        own, seconds = own + cpu, found.wall + wall
        chain.append(seconds + max((chain[before] for before in job.needs), default=0.0))
        for name, limit in graph.limits.items():
            # A job that asks for more than there is takes all there is.
            busy[name] += seconds * min(job.uses.get(name, 0.0) / limit, 1.0)
        end, kept = end + found.written, kept + found.work.kept
        checkpoint = max(checkpoint, found.work.state)
        # A tiny model makes do without a GPU on a machine that counts none.
        counts = graph.cluster or "gpu" in graph.limits or not forecaster.tiny(job)
        _add(rules, job, found, found.wall * job.gpus * counts)
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
        "rules": rules,
        "more": any(job.known == "refine" for job in graph.jobs),
        "about": _about(graph, forecaster),
    }


def _add(rules: dict[str, dict[str, Any]], job: Job, found: Estimate, gpu: float) -> None:
    """Add what a job takes to that of its rule."""
    more = {"jobs": 1, "gpu_seconds": gpu, "cpu_seconds": found.cpu, "wall_seconds": found.wall}
    entry = rules.setdefault(job.rule, {"memory_mb": 0.0, "sources": Counter()})
    entry |= {name: entry.get(name, 0) + n for name, n in more.items()}
    entry["memory_mb"] = max(entry["memory_mb"], job.memory_mb)
    entry["sources"][found.source] += 1


def _about(graph: Graph, forecaster: Forecaster) -> list[str]:
    """Return sentences on the models: how large they are, by what, and over what they are cut."""
    costs, found = forecaster.costs, []
    if any(job.gpus and forecaster.tiny(job) for job in graph.jobs):
        found.append("GPU rules of tiny models are counted for one core of a CPU.")
    counts: Counter[str] = Counter()
    for job in graph.jobs:
        if (model := job.wildcards.get("model", "")) in costs.config["models"]:
            counts[model] = max(counts[model], job.gpus)
    for model, count in sorted(counts.items()):
        large = costs.size(model)
        said = f"{model}: {large.billions:.3g} billion parameters, {large.source}"
        if count > 1:
            training = costs.config["models"][model]["training"]
            has = costs.config["execution"]["gpu_memory"]
            kept, most = (f(large, training, count) / 1e9 for f in (resident, needed))
            said += (
                f"; cut over {count} GPUs, {kept:.0f} GB on each for its weights, gradients and "
                f"moments, up to {most:.0f} GB in a step before activations, of {has:.0f} GB"
                f"{': too little' if most > has else ''}; "
                f"{exchange(large, training, count):.1f} s of each step to exchange them at "
                f"{LINK / 1e9:.0f} GB/s, assumed"
            )
        found.append(f"{said}.")
    return found


def clock(seconds: float) -> str:
    """Return a time in the unit that suits it: ``-``, ``8.0 s``, ``12 min``, ``1,530 h``."""
    if not seconds:
        return "-"
    unit, one = ("s", 1) if seconds < 99.5 else ("min", 60) if seconds < 5970 else ("h", 3600)
    return f"{seconds / one:,.{0 if seconds / one >= 9.95 else 1}f} {unit}"


def size(count: float) -> str:
    """Return bytes in the unit that suits them: ``20 kB``, ``6.8 GB``, ``15.2 TB``."""
    for unit, one in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if count >= one:
            return f"{count / one:.1f} {unit}"
    return f"{count / 1e3:.0f} kB" if count else "-"
