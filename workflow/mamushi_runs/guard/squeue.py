"""Jobs in SLURM's queue, asked for in a bounded time, and without a shell."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SECONDS = 30.0
"""After this long, a command of SLURM counts as unanswered."""
ATTEMPTS, PAUSE = 3, 5.0
"""How often a command is tried, and the seconds between: a controller restarts in a few."""
POLL = 5.0
"""Seconds between two looks at jobs that are waited for."""

# A character that no name, comment or folder holds.
_SEPARATOR = "\x1f"
_FIELDS = ("%i", "%T", "%j", "%k", "%Z")
# Snakemake names its jobs by the run: a UUID, perhaps after a prefix of the user's.
_RUN = re.compile(r"(?:[A-Za-z0-9_-]{1,50}_)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Unanswered(Exception):
    """SLURM's command failed or took too long; the text is what it said."""


@dataclass(frozen=True)
class Job:
    """A job in SLURM's queue that Snakemake submitted.

    ``state`` is SLURM's word in full, such as RUNNING; ``rule`` is the rule with its wildcards, or
    empty where the cluster keeps no comments.
    """

    id: str
    state: str
    rule: str


def available() -> bool:
    """Return whether this machine has SLURM's commands."""
    return shutil.which("squeue") is not None


def jobs_of(folder: str | os.PathLike[str], *, patient: bool = True) -> list[Job]:
    """Return this user's pending and running jobs that Snakemake submitted in ``folder``.

    ``patient``: whether to ask again where there is no answer. Raises ``Unanswered``.
    """
    # The number of the user, since containers may have no name for it; `--me` is newer than many
    # clusters are.
    answer = ask(
        *("squeue", "--noheader", f"--user={os.getuid()}"),
        "--format=" + _SEPARATOR.join(_FIELDS),
        attempts=ATTEMPTS if patient else 1,
    )
    own = Path(folder).resolve()
    found = []
    for line in answer.splitlines():
        fields = line.split(_SEPARATOR)
        if len(fields) != len(_FIELDS):
            continue
        job, state, name, comment, where = fields
        if _RUN.fullmatch(name) and where.startswith("/") and Path(where).resolve() == own:
            found.append(Job(job, state, _rule(comment)))
    return found


def _rule(comment: str) -> str:
    """Return the rule and wildcards of the plug-in's comment, ``rule_NAME_wildcards_VALUES``."""
    if not comment.startswith("rule_"):
        return ""
    name, _, wildcards = comment.removeprefix("rule_").partition("_wildcards_")
    return f"{name} {wildcards}".strip()


def cancel(jobs: Sequence[str]) -> None:
    """Cancel these jobs and no others. Raises ``Unanswered``."""
    for start in range(0, len(jobs), 500):
        ask("scancel", *jobs[start : start + 500], attempts=ATTEMPTS)


def ask(*command: str, attempts: int) -> str:
    """Return the output of a SLURM command. Raises ``Unanswered`` after ``attempts`` failures."""
    said = ""
    for attempt in range(attempts):
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
        except OSError as error:
            raise Unanswered(f"{command[0]}: {error.strerror}") from None
        if done.returncode == 0:
            return done.stdout
        said = " ".join(done.stderr.split()) or f"{command[0]} ended with {done.returncode}"
    raise Unanswered(said)
