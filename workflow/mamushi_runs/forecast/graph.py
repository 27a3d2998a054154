"""The jobs that a run is about to start, and what it may use at a time, read from Snakemake.

The one module of the plan that knows Snakemake's classes. A run of thousands of jobs is read in a
fraction of a second: what depends on rule and model alone is asked for once for each pair.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mamushi_runs.forecast import work

CORES, QUEUE = "_cores", "_nodes"
"""Snakemake's words for two of its resources."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job to do."""

    rule: str
    """As the workflow names it."""
    known: str | None
    """As we do; None for a rule of another workflow that imports this one."""
    wildcards: Mapping[str, str]
    outputs: tuple[str, ...]
    needs: tuple[int, ...]
    """Numbers of the jobs that come before it."""
    uses: Mapping[str, float] = field(default_factory=dict)
    """What it takes of each resource by name: of the machine, or of a cluster's queue."""
    gpus: int = 0
    threads: int = 1
    memory_mb: float | None = None
    """Requested."""


@dataclass(frozen=True)
class Graph:
    """The jobs to do, each after those that it needs."""

    jobs: list[Job]
    limits: Mapping[str, int]
    """What of a resource may be in use at a time; one without a limit is not here."""
    patterns: Mapping[str, str]
    """Pattern of the logs of each rule that has jobs to do."""
    cluster: bool = False
    gpu_model: str | None = None
    """As the profile asks for it."""


class Cluster(NamedTuple):
    """Where jobs would run, for a dry run, which is local itself."""

    jobs: int | None
    local_cores: int | None


def read(workflow: Any, cluster: Cluster | None = None, gpus: int | None = None) -> Graph:
    """Return the jobs of ``workflow`` (Snakemake's), whose graph has been built; ``gpus`` in place
    of its own limit of GPUs at a time."""
    if cluster is None and not workflow.local_exec:
        cluster = Cluster(workflow.nodes, workflow.resource_settings.local_cores)
    limits = _limits(workflow, cluster) | ({} if gpus is None else {"gpu": gpus})
    dag = workflow.dag
    # Without targets, which run nothing.
    wanted = {job for job in dag.needrun_jobs() if not job.is_norun}
    order = [job for level in dag.toposorted(wanted) for job in level]
    number = {job: place for place, job in enumerate(order)}
    patterns: dict[str, str] = {}
    shared: dict[tuple[str, str | None], dict[str, Any]] = {}
    models: list[str] = []
    jobs = []
    for job in order:
        rule, wildcards = job.rule, dict(job.wildcards_dict)
        log = next(iter(rule.log), None)
        if isinstance(log, str) and rule.name not in patterns:
            # Snakemake writes constraints into it: {seed,\d+}.
            pattern = re.sub(r"\{(\w+),[^{}]*(?:\{[^{}]*\}[^{}]*)*\}", r"{\1}", str(log))
            patterns[rule.name] = pattern
        key = rule.name, wildcards.get("model")
        if key not in shared:
            asked = {name: n for name, n in job.resources.items() if isinstance(n, int | float)}
            gpus_asked = int(asked.get("gpu", 0))
            if gpus_asked and isinstance(job.resources.get("gpu_model"), str):
                models.append(job.resources["gpu_model"])
            # Snakemake's own word, is_local(), depends on the executor: a dry run's is local.
            stays = rule.group is None and rule.name in workflow._localrules
            remote = cluster is not None and not stays
            asked |= {CORES: 0, QUEUE: 1} if remote else {CORES: int(job.threads), QUEUE: 0}
            shared[key] = {
                **{"known": _known(rule), "gpus": gpus_asked, "memory_mb": asked.get("mem_mb")},
                "threads": int(job.threads),
                "uses": {name: float(asked.get(name, 0)) for name in limits},
            }
        outputs = tuple(map(str, job.output))
        needs = tuple(number[before] for before in dag.dependencies[job] if before in number)
        jobs.append(
            Job(rule.name, wildcards=wildcards, outputs=outputs, needs=needs, **shared[key])
        )
    return Graph(jobs, limits, patterns, cluster is not None, next(iter(models), None))


def _limits(workflow: Any, cluster: Cluster | None) -> dict[str, int]:
    """Return limits by resource. On a cluster, one of scope `local` is of a job or a pack of jobs,
    and binds nothing across the run."""
    given = {name: getattr(n, "value", n) for name, n in workflow.global_resources.items()}
    if cluster is not None:
        scopes = workflow.resource_scopes
        given = {name: n for name, n in given.items() if not scopes.is_local(name)}
        given |= {CORES: cluster.local_cores or os.cpu_count(), QUEUE: cluster.jobs}
    else:
        given |= {CORES: given.get(CORES) or 1, QUEUE: None}
    # A large number stands for unlimited.
    return {name: n for name, n in given.items() if isinstance(n, int) and n < sys.maxsize}


def _known(rule: Any) -> str | None:
    """Return our name of a rule that runs one of our stages, whatever another workflow calls it."""
    stage = re.search(r"-m mamushi ([a-z-]+)", str(rule.shellcmd or ""))
    return None if stage is None else work.known(rule.name) or stage[1].replace("-", "_")
