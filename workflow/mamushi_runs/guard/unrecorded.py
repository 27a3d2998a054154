"""Results that were finished without their main process, and so without Snakemake's record of them.

Snakemake's record of a file (its parameters, code and inputs) is written by the main process. When
that was killed, its jobs still finish. In SLURM they take the mark "incomplete" off their files
themselves: the next run would take the files as they are, and with no record, or one of an earlier
file, no later change of the configuration would show. On this machine the mark stays, and the next
run would compute again what is finished.

Most results say what they were made with: the settings, among them the digest of the code, and the
digests of the inputs. Where these are the job's own, the result is recorded as if this run had made
it; all others are computed again.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from mamushi.artifacts import files
from mamushi.errors import UserError

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
    digest = cache(files.sha256)
    kept, again = [], []
    for job in dag.jobs:
        if not job.output or not unrecorded(persistence, job, since):
            continue
        marked = bool(await persistence.incomplete(job))
        # What runs in any case, runs. A checkpoint has to: its end opens up the rest of the graph.
        if dag.needrun(job) and (forced or job.is_checkpoint or not marked):
            continue
        if made_as_now(job, digest):
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


def unrecorded(persistence: Any, job: Any, since: float) -> bool:
    """Whether the job's outputs are there, one of them written after ``since``, and Snakemake's
    record of that, if there is any, tells of an earlier file."""
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


def made_as_now(job: Any, digest: Callable[[str], str]) -> bool:
    """Whether the results say that they were made with the job's settings from its inputs."""
    made = [about for path in job.output if (about := provenance(Path(path)))]
    try:
        settings = json.loads(job.params.settings)
        read = {digest(path) for path in job.input}
        return bool(made) and all(
            about["settings"] == settings and set(about["inputs"].values()) <= read
            for about in made
        )
    except (AttributeError, KeyError, TypeError, ValueError, OSError, UserError):
        return False


def provenance(path: Path) -> dict[str, Any] | None:
    """Settings and inputs that a card or a Parquet file says it was made with.

    Parquet keeps them as plain text in its footer, so that no reader of Parquet has to be loaded,
    whose import takes a second.
    """
    try:
        if path.suffix == ".json":
            found = json.loads(path.read_text(encoding="utf-8"))
        elif path.suffix == ".parquet":
            with path.open("rb") as handle:
                handle.seek(-8, os.SEEK_END)
                length = int.from_bytes(handle.read(4), "little")
                handle.seek(-8 - length, os.SEEK_END)
                footer = handle.read(length).decode("utf-8", "replace")
            # Behind its key; a column of selectors has the word among its statistics as well.
            start = re.search(r"mamushi[^{]{1,12}(?={\")", footer)
            found, _ = json.JSONDecoder().raw_decode(footer, start.end() if start else 0)
        else:
            return None
    except (OSError, ValueError):
        return None
    if not isinstance(found, dict):
        return None
    found = found.get("provenance", found)
    return found if isinstance(found, dict) and "settings" in found else None
