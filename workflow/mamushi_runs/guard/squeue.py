"""Jobs in SLURM's queue, asked for in a bounded time, and without a shell."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

SECONDS = 30.0
"""After this long, a command of SLURM counts as unanswered."""
ATTEMPTS, PAUSE = 3, 5.0
"""How often a command is tried, and the seconds between: a controller restarts in a few."""

# A character that no name, comment or folder holds.
_SEPARATOR = "\x1f"
_FIELDS = ("%i", "%T", "%j", "%k", "%Z")
# Snakemake names its jobs by the run: a UUID, perhaps after a prefix of the user's.
_RUN = re.compile(r"(?:[A-Za-z0-9_-]{1,50}_)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Unanswered(Exception):
    """SLURM's command failed or took too long; the text is what it said."""


class Job(NamedTuple):
    """A job in SLURM's queue that Snakemake submitted."""

    id: str
    state: str
    """SLURM's word in full, such as RUNNING."""
    rule: str
    """With its wildcards; empty where the cluster keeps no comments."""
    run: str
    """The name that all jobs of its run share."""


def jobs_of(folder: str | os.PathLike[str], attempts: int | None = None) -> list[Job]:
    """Return this user's pending and running jobs that Snakemake submitted in ``folder``; none on a
    machine without SLURM. Raises ``Unanswered``."""
    if shutil.which("squeue") is None:
        return []
    # The number of the user, since containers may have no name for it; `--me` is newer than many
    # clusters are.
    answer = ask(
        *("squeue", "--noheader", f"--user={os.getuid()}"),
        "--format=" + _SEPARATOR.join(_FIELDS),
        attempts=attempts,
    )
    own = Path(folder).resolve()
    found = []
    for line in answer.splitlines():
        fields = line.split(_SEPARATOR)
        if len(fields) != len(_FIELDS):
            continue
        job, state, name, comment, where = fields
        if _RUN.fullmatch(name) and where.startswith("/") and Path(where).resolve() == own:
            # The plug-in's is ``rule_NAME_wildcards_VALUES``.
            rule = comment.removeprefix("rule_").replace("_wildcards_", " ")
            found.append(Job(job, state, rule if comment.startswith("rule_") else "", name))
    return found


def cancel(jobs: Sequence[str]) -> None:
    """Cancel these jobs and no others. Raises ``Unanswered``."""
    for start in range(0, len(jobs), 500):
        ask("scancel", *jobs[start : start + 500])


def ask(*command: str, attempts: int | None = None) -> str:
    """Return the output of a SLURM command. Raises ``Unanswered`` after some failures."""
    said = ""
    for attempt in range(attempts or ATTEMPTS):
        if attempt:
            time.sleep(PAUSE)
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            said = f"{command[0]} did not answer within {SECONDS:.0f} s"
            continue
        if done.returncode == 0:
            return done.stdout
        said = " ".join(done.stderr.split()) or f"{command[0]} ended with {done.returncode}"
    raise Unanswered(said)
