"""The forecast that a run begins with, and the comparison that it ends with."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mamushi.artifacts.files import write_json
from mamushi.running.usage import processor_seconds
from mamushi_runs.forecast import graph, history, rates
from mamushi_runs.forecast.forecast import forecast
from mamushi_runs.forecast.graph import Graph
from mamushi_runs.forecast.words import clock, size

FOLDER = Path("results/plan")
"""One JSON file for each run: its forecast, and what became of it."""
_running: list[tuple[Path, dict[str, Any], float]] = []
"""Of the run of this process: the path of its record, its forecast, and when it began."""


def expected(
    jobs: Graph, config: Mapping[str, Any], *, gpu: str | None = None, share: float | None = None
) -> dict[str, Any]:
    """Return the forecast of the jobs of a run in this folder.

    ``gpu`` is the name of one, by default the profile's, else the paper's; ``share`` as in
    ``rates.rate``. Raises ``UserError`` for a GPU that is not known.
    """
    # The profile may ask for a GPU that the table does not have.
    profile = jobs.gpu_model if jobs.gpu_model and rates.known(jobs.gpu_model) else None
    return forecast(jobs, config, rates.rate(gpu or profile, share), own=processor_seconds())


def current() -> Mapping[str, Any] | None:
    """Return the forecast of the run of this process, None where there is none."""
    return _running[-1][1] if _running else None


def begin(workflow: Any, config: Mapping[str, Any]) -> str | None:
    """Keep the forecast of a run that is about to start; return the line to print.

    None within a job, where the workflow is read once more, and where nothing is run.
    """
    _running.clear()
    if not workflow.is_main_process or workflow.dryrun or workflow.touch:
        return None
    found = expected(graph.read(workflow), config)
    path = FOLDER / f"{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}.json"
    write_json(path, {"forecast": found, "actual": None})
    _running.append((path, found, time.monotonic()))
    gpu = f"{clock(found['gpu_seconds'])} GPU, " if found["gpu_seconds"] else ""
    count = found["past_jobs"]
    source = f"from {count} past job{'s' * (count != 1)}" if count else "without any past job"
    return (
        f"Forecast for {found['jobs']} jobs: about {clock(found['wall_seconds'])} wall, {gpu}"
        f"{clock(found['cpu_seconds'])} CPU, {size(found['disk']['end'])} disk; {source}."
    )


def end(workflow: Any, *, succeeded: bool) -> str | None:
    """Compare the forecast with what the run took, and keep both; return the line to print.

    None where ``begin`` kept none. On a cluster, the processor time of jobs is not known here.
    """
    if not _running:
        return None
    path, found, began = _running.pop()
    jobs = [job for job in workflow.dag.jobs if not job.is_norun and workflow.dag.finished(job)]
    wall = time.monotonic() - began
    # Jobs of a server of warm processes are no children of this process.
    used = [history.read(Path(log)) for job in jobs for log in job.log]
    logged = sum(each.cpu for each in used if each is not None)
    cpu = processor_seconds(logged) if workflow.local_exec else None
    failed = len(getattr(workflow.scheduler, "failed", ()))
    actual = {"succeeded": succeeded, "done": len(jobs), "failed": failed}
    times = {"wall_seconds": wall, "cpu_seconds": cpu}
    write_json(path, {"forecast": found, "actual": {**actual, **times}})
    parts = [f"{len(jobs)} of {found['jobs']} jobs done, {failed} failed"]
    for (name, took), unit in zip(times.items(), ("wall", "CPU"), strict=True):
        if took is not None:
            parts.append(f"{clock(took)} {unit} (forecast {clock(found[name])})")
    return f"Forecast against actual: {', '.join(parts)}."
