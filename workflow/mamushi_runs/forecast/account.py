"""The forecast that a run begins with, and the comparison that it ends with."""

from __future__ import annotations

import resource
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mamushi_runs.forecast import benchmarks, graph, ledger, rates, text
from mamushi_runs.forecast.forecast import forecast
from mamushi_runs.forecast.graph import Graph


@dataclass(frozen=True)
class Begun:
    """A run that is under way."""

    path: Path
    """Of its record."""
    forecast: Mapping[str, Any]
    time: float
    """By the clock of files, to tell benchmarks of this run from older ones."""
    monotonic: float
    cpu: float


_begun: list[Begun] = []


def processor_seconds() -> float:
    """Of this process and of its children that have ended."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def expected(
    jobs: Graph,
    config: Mapping[str, Any],
    *,
    gpu: str | None = None,
    share: float | None = None,
    padded: bool | None = None,
    past: bool = True,
) -> dict[str, Any]:
    """The forecast of the jobs of a run in this folder.

    ``gpu`` is the name of one, by default the profile's, else the paper's; ``share`` and ``padded``
    as in ``rates.rate``; without ``past`` benchmarks are not looked at. Raises ``UserError`` for a
    GPU that is not known.
    """
    # The profile may ask for a GPU that the table does not have.
    profile = jobs.gpu_model if jobs.gpu_model and rates.known(jobs.gpu_model) else None
    return forecast(
        jobs,
        config,
        rates.rate(gpu or profile, share, padded),
        benchmarks=past,
        overhead=ledger.overhead(processor_seconds()),
    )


def begin(workflow: Any, config: Mapping[str, Any]) -> str | None:
    """Keep the forecast of a run that is about to start; returns the line to print.

    None within a job, where the workflow is read once more, and where nothing is run.
    """
    _begun.clear()
    if not workflow.is_main_process or workflow.dryrun or workflow.touch:
        return None
    made = expected(graph.read(workflow), config)
    path = ledger.new()
    _begun.append(Begun(path, made, time.time(), time.monotonic(), processor_seconds()))
    ledger.write(path, made, None)
    return text.line(made)


def end(workflow: Any, *, succeeded: bool) -> str | None:
    """Compare the forecast with what the run took, and keep both; returns the table to print.

    None where ``begin`` made none.
    """
    if not _begun:
        return None
    begun = _begun.pop()
    actual = _actual(workflow, begun, succeeded)
    ledger.write(begun.path, begun.forecast, actual)
    return text.outcome(begun.forecast, actual)


def _actual(workflow: Any, begun: Begun, succeeded: bool) -> dict[str, Any]:
    """What a run took: the processor time of this process and its children; on a cluster, where
    jobs are no children, that of the benchmarks and of this process."""
    rules: dict[str, dict[str, float]] = {}
    done = 0
    for job in workflow.dag.jobs:
        if job.is_norun or not workflow.dag.finished(job):
            continue
        done += 1
        entry = rules.setdefault(
            job.rule.name, {"jobs": 0, "cpu_seconds": 0.0, "wall_seconds": 0.0}
        )
        entry["jobs"] += 1
        measured = _measured(job.benchmark, begun.time)
        if measured is not None:
            entry["cpu_seconds"] += measured.cpu
            entry["wall_seconds"] += measured.wall
    jobs_cpu = sum(entry["cpu_seconds"] for entry in rules.values())
    cluster = not workflow.local_exec
    own = processor_seconds()
    return {
        "succeeded": succeeded,
        "cluster": cluster,
        "done": done,
        "failed": len(getattr(workflow.scheduler, "failed", ())),
        "wall_seconds": time.monotonic() - begun.monotonic,
        "cpu_seconds": own + jobs_cpu if cluster else own,
        "jobs_cpu_seconds": jobs_cpu,
        "begun_cpu_seconds": begun.cpu,
        "rules": rules,
    }


def _measured(path: Any, since: float) -> benchmarks.Measured | None:
    """The benchmark of a job of this run."""
    if path is None:
        return None
    try:
        # File systems keep times in steps of up to two seconds, and other machines' clocks differ.
        old = Path(path).stat().st_mtime < since - 5
    except OSError:
        return None
    return None if old else benchmarks.read(path)
