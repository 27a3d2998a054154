"""Results that were finished without their main process, and so without Snakemake's record of them.

Snakemake's record of a file (its parameters, code and inputs) is written by the main process. When
that was killed, its jobs still finish, and take the mark "incomplete" off their files themselves:
the next run finds files that are there, whole and newer than their inputs, and takes them as they
are. With no record, or one of an earlier file, no later change of the configuration would show.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

CLOSE = 1.0
"""Seconds by which the time of a file and of its record may differ: clocks and file systems."""


def look_again(workflow: Any, *, since: float, say: Callable[[str], None]) -> int:
    """Let the jobs run again whose files were written after ``since`` (in seconds since 1970) and
    have no record of their own. Returns how many.

    A job whose command is the same takes over what was finished (``mamushi.running.claims``), and
    so costs its start alone; one whose settings have changed since works anew, as it must.
    """
    dag = workflow.dag
    jobs = [job for job in dag.jobs if not dag.needrun(job) and unrecorded(workflow, job, since)]
    if not jobs:
        return 0
    # As Snakemake does it itself for files that are marked as incomplete.
    dag.forcefiles.update(file for job in jobs for file in job.output)
    workflow.async_run(dag.postprocess(update_needrun=True, check_initial=True))
    rules = ", ".join(sorted({job.rule.name for job in jobs}))
    say(
        f"The main process of an earlier run was killed, and {len(jobs)} of its jobs finished "
        f"without it ({rules}). They are added to this run, which takes over their results where "
        "the settings are still the same."
    )
    return len(jobs)


def unrecorded(workflow: Any, job: Any, since: float) -> bool:
    """Whether an output of the job was written after ``since`` and Snakemake's record of it, if
    there is any, tells of an earlier file."""
    for file in job.output:
        try:
            written = os.stat(file).st_mtime
        except OSError:
            continue
        if written < since - CLOSE:
            continue
        record = workflow.persistence.metadata(file)
        ended = getattr(record, "endtime", None)
        if ended is None or abs(ended - written) > CLOSE:
            return True
    return False
