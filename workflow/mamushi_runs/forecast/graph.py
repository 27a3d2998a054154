"""The jobs that a run is about to start, and what it may use at a time, read from Snakemake.

The one module of the plan that knows Snakemake's classes. A run of thousands of jobs is read in a
fraction of a second: what depends on rule and model alone is asked for once for each pair.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from mamushi_runs.forecast import work
from mamushi_runs.forecast.benchmarks import AXES


@dataclass(slots=True)
class Job:
    """A job to do."""

    rule: str
    """As the workflow names it."""
    known: str | None
    """As we do; None for a rule of another workflow that imports this one."""
    wildcards: Mapping[str, str]
    benchmark: str | None
    """Path of its benchmark file, as it will be."""
    outputs: tuple[str, ...]
    needs: tuple[int, ...]
    """Numbers of the jobs that come before it."""
    threads: int = 1
    gpus: int = 0
    memory_mb: float | None = None
    """Requested."""
    local: bool = False
    """Runs where Snakemake does."""
    priority: int = 0
    idle: bool = False
    """Only names what others make, as a target does."""

    key: tuple[str | None, ...] = field(init=False)
    """What tells apart jobs that differ in what they take: rule, model, dataset, budget, AXES."""

    def __post_init__(self) -> None:
        given = self.wildcards
        names = ("model", "dataset", "beta", *AXES)
        self.key = (self.rule, *[given.get(name) for name in names])

    @property
    def model(self) -> str | None:
        return self.wildcards.get("model")


@dataclass(frozen=True)
class Limits:
    """What may be in use at the same time; None is without a limit."""

    cores: int | None = 1
    """Of this machine; on a cluster, for local rules alone."""
    gpus: int | None = None
    jobs: int | None = None
    """In the queue of a cluster; None on a single machine."""
    memory_mb: float | None = None
    cluster: bool = False

    def __str__(self) -> str:
        gpus = [] if self.gpus is None else [f"{self.gpus} GPU{'s' * (self.gpus != 1)}"]
        if self.cluster:
            jobs = "any number of jobs" if self.jobs is None else f"{self.jobs} jobs"
            return " and ".join([f"{jobs} in the queue", *gpus])
        cores = "all" if self.cores is None else self.cores
        return " and ".join([f"{cores} core{'s' * (self.cores != 1)}", *gpus])


@dataclass(frozen=True)
class Graph:
    """The jobs to do, each after those that it needs."""

    jobs: list[Job]
    limits: Limits
    patterns: Mapping[str, str] = field(default_factory=dict)
    """Pattern of the benchmark files of each rule that has jobs to do."""
    there: tuple[tuple[Job, str], ...] = ()
    """Large outputs that are there already: job (that need not run) and path."""
    gpu_model: str | None = None
    """As the profile asks for it."""


LARGE = (".safetensors", "embeddings.parquet")


def read(workflow: Any) -> Graph:
    """The jobs of ``workflow`` (Snakemake's), whose graph has been built."""
    dag = workflow.dag
    order = _ordered(dag)
    number = {job: place for place, job in enumerate(order)}
    shared: dict[tuple[str, str | None], tuple[int, int, float | None, bool]] = {}
    patterns: dict[str, str | None] = {}
    names: dict[str, str | None] = {}
    gpu_model: str | None = None
    jobs = []
    for job in order:
        rule = job.rule.name
        wildcards = dict(job.wildcards_dict)
        if rule not in patterns:
            patterns[rule], names[rule] = _pattern(job.rule), _known(job.rule)
        key = rule, wildcards.get("model")
        if key not in shared:
            asked = job.resources
            threads, gpus = int(job.threads), _number(asked.get("gpu"))
            shared[key] = (
                threads,
                int(gpus or 0),
                _number(asked.get("mem_mb")),
                _local(workflow, job),
            )
            if gpus and isinstance(asked.get("gpu_model"), str):
                gpu_model = gpu_model or asked["gpu_model"]
        threads, gpu, memory, local = shared[key]
        pattern = patterns[rule]
        jobs.append(
            Job(
                rule=rule,
                known=names[rule],
                wildcards=wildcards,
                benchmark=pattern.format(**wildcards) if pattern else None,
                outputs=tuple(map(str, job.output)),
                needs=tuple(number[d] for d in dag.dependencies[job] if d in number),
                threads=threads,
                gpus=gpu,
                memory_mb=memory,
                local=local,
                priority=int(job.priority) if isinstance(job.priority, int) else 0,
                idle=bool(job.is_norun),
            )
        )
    kept = {rule: pattern for rule, pattern in patterns.items() if pattern}
    return Graph(jobs, _limits(workflow), kept, tuple(_there(dag, number)), gpu_model)


def _ordered(dag: Any) -> list[Any]:
    """The jobs that are to run, each after those that it needs; the same order every time."""
    waiting = list(dag.needrun_jobs())
    # Rules by name and jobs by wildcards: Snakemake keeps jobs in sets, whose order changes.
    waiting.sort(key=lambda job: (job.rule.name, sorted(job.wildcards_dict.items())))
    left = {job: 0 for job in waiting}
    after: dict[Any, list[Any]] = {}
    for job in waiting:
        for before in dag.dependencies[job]:
            if before in left:
                left[job] += 1
                after.setdefault(before, []).append(job)
    ready = [job for job in waiting if not left[job]]
    for job in ready:
        for later in after.get(job, ()):
            left[later] -= 1
            if not left[later]:
                ready.append(later)
    return ready


def _local(workflow: Any, job: Any) -> bool:
    """Whether a job of a run on a cluster stays on this machine. Snakemake's own word depends on
    the executor, and a dry run's is local."""
    rule = job.rule
    return rule.group is None and (rule.norun or rule.name in workflow._localrules)


def _known(rule: Any) -> str | None:
    """Our name of a rule; where it has none, but runs one of our stages, the stage's."""
    stage = re.search(r"-m mamushi ([a-z-]+)", str(rule.shellcmd or ""))
    if stage is None:
        return None if rule.shellcmd else work.known(rule.name)
    return work.known(rule.name) or stage[1].replace("-", "_")


def _pattern(rule: Any) -> str | None:
    """A rule's pattern of benchmark files, for ``str.format``."""
    if not isinstance(rule.benchmark, str):
        return None
    # As Snakemake writes constraints into it: {seed,\d+}.
    return re.sub(r"\{(\w+),[^{}]*(?:\{[^{}]*\}[^{}]*)*\}", r"{\1}", str(rule.benchmark))


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _limits(workflow: Any) -> Limits:
    """What a run may use; a dry run, which is local, says nothing of a cluster."""

    def given(name: str) -> int | None:
        limit = workflow.global_resources.get(name)
        return whole(getattr(limit, "value", limit))

    cluster = not workflow.local_exec
    cores = whole(workflow.resource_settings.local_cores) if cluster else given("_cores")
    return Limits(
        cores=cores or os.cpu_count() or 1,
        gpus=given("gpu"),
        jobs=given("_nodes") if cluster else None,
        memory_mb=None if cluster else given("mem_mb"),
        cluster=cluster,
    )


def whole(value: Any) -> int | None:
    """A number of Snakemake's; None for none, and for the large one that stands for unlimited."""
    return value if isinstance(value, int) and value < sys.maxsize else None


def _there(dag: Any, wanted: Mapping[Any, int]) -> list[tuple[Job, str]]:
    found = []
    for job in dag.jobs:
        if job in wanted:
            continue
        for path in map(str, job.output):
            if path.endswith(LARGE):
                rule = job.rule.name
                mine = Job(rule, _known(job.rule), dict(job.wildcards_dict), None, (path,), ())
                found.append((mine, path))
    return found


def on_cluster(graph: Graph, jobs: int | None, cores: int | None) -> Graph:
    """The same on a cluster, with so many jobs in its queue and cores for local rules."""
    limits = replace(graph.limits, cluster=True, jobs=jobs, memory_mb=None)
    return replace(graph, limits=replace(limits, cores=cores or os.cpu_count() or 1))


def with_gpus(graph: Graph, gpus: int) -> Graph:
    """The same with so many GPUs at a time."""
    return replace(graph, limits=replace(graph.limits, gpus=gpus))
