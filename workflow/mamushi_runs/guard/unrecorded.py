"""Results that were finished without their main process, and so without Snakemake's record of them.

Snakemake's record of a file is written by the main process. When that was killed, its jobs still
finish. In SLURM they take the mark "incomplete" off their files: no later change of the
configuration would show. On this machine the mark stays, and what is finished would be computed
again. So a result whose own record has the job's settings and the digests of its inputs is recorded
as if this run had made it; all others are computed again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mamushi.errors import UserError
from mamushi.io import digests
from mamushi.io.provenance import recorded

CLOSE = 1.0
"""Seconds by which the time of a file and of its record may differ: clocks and file systems."""


def look_again(workflow: Any, *, since: float, say: Callable[[str], None]) -> None:
    """Record or repeat the jobs whose files were written after ``since`` (in seconds since 1970)
    and have no record of their own."""
    workflow.async_run(_look_again(workflow, since, say))


async def _look_again(workflow: Any, since: float, say: Callable[[str], None]) -> None:
    dag, persistence = workflow.dag, workflow.persistence
    wanted = workflow.dag_settings
    forced = wanted.forceall or wanted.forcerun or wanted.forcetargets
    kept, again = [], []
    for job in dag.jobs:
        if not job.output or not is_unrecorded(persistence, job, since):
            continue
        marked = bool(await persistence.incomplete(job))
        # What runs in any case, runs. A checkpoint has to: its end opens up the rest of the graph.
        if dag.needrun(job) and (forced or job.is_checkpoint or not marked):
            continue
        if is_current(job):
            await persistence.finished(job)
            dag.forcefiles.difference_update(job.output)
            dag.reason(job).clear()
            kept.append(job)
        else:
            dag.forcefiles.update(job.output)
            again.append(job)
    if kept or again:
        await dag.postprocess(update_needrun=True, check_initial=True)
    for jobs, become in ((kept, "taken over"), (again, "computed again")):
        if jobs:
            rules = ", ".join(sorted({job.rule.name for job in jobs}))
            say(f"{len(jobs)} jobs of an earlier run finished without it ({rules}): {become}.")


def is_unrecorded(persistence: Any, job: Any, since: float) -> bool:
    """Return whether the job's outputs are there, one of them written after ``since``, and
    Snakemake's record of that, if there is any, is of an earlier file."""
    found = False
    for file in job.output:
        try:
            written = os.stat(file).st_mtime
        except OSError:
            return False
        if written >= since - CLOSE and not found:
            ended = getattr(persistence.metadata(file), "endtime", None)
            found = ended is None or abs(ended - written) > CLOSE
    return found


def is_current(job: Any) -> bool:
    """Return whether the results were made with the job's settings from its inputs."""
    try:
        found = [about for path in job.output if (about := recorded(Path(path)))]
        settings = json.loads(job.params.settings)
        read = {digests.of(path) for path in job.input}
    except (AttributeError, KeyError, TypeError, ValueError, OSError, UserError):
        return False
    return bool(found) and all(
        about["settings"] == settings and set(about["inputs"].values()) <= read for about in found
    )
