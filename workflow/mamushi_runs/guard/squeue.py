"""What SLURM says of jobs, asked in a bounded time, and without a shell."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

SECONDS = 30.0
"""After this long, a command of SLURM counts as unanswered."""

# A character that no name, comment or folder holds.
_SEPARATOR = "\x1f"
_FIELDS = ("%i", "%T", "%j", "%k", "%Z")
# Snakemake names its jobs by the run: a UUID, perhaps after a prefix of the user's.
_RUN = re.compile(r"(?:[A-Za-z0-9_-]{1,50}_)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

OVER = frozenset(
    {
        *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL"),
        *("OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT"),
    }
)
"""States from which no job comes back by itself: a requeued one is pending in squeue."""


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
    folder: str


def available() -> bool:
    """Whether this machine has SLURM's commands."""
    return shutil.which("squeue") is not None


def jobs_of(folder: str | os.PathLike[str], *, patient: bool = True) -> list[Job]:
    """This user's pending and running jobs that Snakemake submitted in ``folder``.

    ``patient``: whether to ask again where there is no answer. Raises ``Unanswered``.
    """
    # The number of the user, since containers may have no name for it; `--me` is newer than many
    # clusters are.
    answer = ask(
        *("squeue", "--noheader", f"--user={os.getuid()}"),
        "--format=" + _SEPARATOR.join(_FIELDS),
        **({} if patient else {"attempts": 1}),
    )
    own = Path(folder).resolve()
    found = []
    for line in answer.splitlines():
        fields = line.split(_SEPARATOR)
        if len(fields) != len(_FIELDS):
            continue
        job, state, name, comment, where = fields
        if _RUN.fullmatch(name) and where.startswith("/") and Path(where).resolve() == own:
            found.append(Job(job, state, _rule(comment), where))
    return found


def _rule(comment: str) -> str:
    """The rule and wildcards of the plug-in's comment, ``rule_NAME_wildcards_VALUES``."""
    if not comment.startswith("rule_"):
        return ""
    name, _, wildcards = comment.removeprefix("rule_").partition("_wildcards_")
    return f"{name} {wildcards}".strip()


def states(run: str) -> dict[str, str]:
    """The state of each job of one run of Snakemake, by id, as far as SLURM remembers them.

    ``run`` is the name that all its jobs have. Raises ``Unanswered``.
    """
    answer = ask("squeue", "--noheader", "--states=all", f"--name={run}", "--format=%i|%T")
    pairs = (line.strip().partition("|") for line in answer.splitlines())
    return {job: state for job, _, state in pairs if job and state}


def accounted(jobs: Collection[str]) -> dict[str, str]:
    """The state of jobs in SLURM's accounting, by id; empty where there is none or no answer."""
    if not jobs or shutil.which("sacct") is None:
        return {}
    listed = ",".join(sorted(jobs))
    try:
        answer = ask(
            *("sacct", "--noheader", "--allocations", "--parsable2"),
            *("--format=JobIDRaw,State", f"--jobs={listed}"),
        )
    except Unanswered:
        return {}
    pairs = (line.strip().partition("|") for line in answer.splitlines())
    # "CANCELLED by 1000"
    return {job: state.split()[0] for job, _, state in pairs if job in jobs and state.strip()}


def cancel(jobs: Sequence[str]) -> None:
    """Cancel these jobs and no others. Raises ``Unanswered``."""
    for start in range(0, len(jobs), 500):
        ask("scancel", *jobs[start : start + 500])


def setting(name: str) -> str | None:
    """A setting of the cluster, such as MinJobAge; None where it is not told.

    Raises ``Unanswered``.
    """
    for line in ask("scontrol", "show", "config").splitlines():
        key, equals, value = line.partition("=")
        if equals and key.strip() == name:
            return value.strip()
    return None


def ask(*command: str, attempts: int = 3, pause: float = 5.0) -> str:
    """What a command of SLURM prints. Raises ``Unanswered`` when it fails ``attempts`` times.

    Takes at most ``attempts`` times ``SECONDS`` and the pauses between them; a controller that
    restarts is back within a pause or two.
    """
    said = ""
    for attempt in range(attempts):
        if attempt:
            time.sleep(pause)
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
