"""After a crash: show what is left of a run, settle it, and remove Snakemake's stale lock.

With jobs left in SLURM, --wait or --cancel says what becomes of them. Then give the command of the
run again. Options of Snakemake that the run was started with (--profile, --configfile) go behind
`--`.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
from pathlib import Path

from mamushi.errors import UserError
from mamushi.registry import tree
from mamushi_runs.guard import session, squeue

GROUP = "check"
SNAKEFILE = tree() / "Snakefile"
CHOICES = {
    "wait": "wait until they have ended; the next run takes over what they finish",
    "cancel": "cancel them; the next run goes on from their checkpoints",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command line's options."""
    choice = parser.add_mutually_exclusive_group()
    for name, what in CHOICES.items():
        choice.add_argument(
            f"--{name}", dest="choice", action="store_const", const=name, help=f"left jobs: {what}"
        )
    parser.add_argument(
        "--directory",
        type=Path,
        default=Path(),
        help="the folder in which the run was (default: this one)",
    )
    parser.add_argument(
        "snakemake", nargs="*", metavar="OPTION", help="options of Snakemake, behind --"
    )


def run(args: argparse.Namespace) -> int:
    """Return 0 when the run can be started again, 1 when a choice is still to be made.

    Raises ``UserError`` when a run lives in the folder, or SLURM or Snakemake fails.
    """
    folder: Path = args.directory.resolve()
    if not (folder / ".snakemake").is_dir():
        raise UserError("no run was ever started here", where=folder, do="give its --directory")
    # To the end, so that none starts between a look and what follows from it.
    with session.hold(folder, _say) or contextlib.nullcontext():
        try:
            jobs = squeue.jobs_of(folder) if squeue.available() else []
        except squeue.Unanswered as error:
            raise session.unanswered(error) from None
        orphans = ", ".join(f"pid {pid}" for pid in session.orphans(folder))
        _say(f"left in SLURM       {session.describe(jobs) if jobs else 'no job'}")
        _say(f"still working here  {orphans or 'no command'}")
        if jobs and args.choice is None:
            _say("\nChoose what becomes of the jobs:")
            for name, what in CHOICES.items():
                _say(f"  --{name:<8} {what}")
            return 1
        if jobs:
            session.settle(folder, jobs, cancelled=args.choice == "cancel", say=_say)
        unlock(folder, args.snakemake)
    _say("Snakemake's lock is removed. Give the command of the run again.")
    return 0


def unlock(folder: Path, options: list[str]) -> None:
    """Remove Snakemake's lock, by Snakemake itself. Raises ``UserError`` when it refuses."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "snakemake", "--unlock"),
            *("--snakefile", str(SNAKEFILE), "--directory", str(folder), *options),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        check=False,
    )
    if done.returncode:
        told = done.stdout.strip().splitlines() or ["no word"]
        raise UserError(
            f"could not remove Snakemake's lock: {' '.join(told[-5:])}",
            where=folder,
            do="give the run's own options behind `--`, such as `-- --configfile mine.yaml`",
        )


def _say(line: str) -> None:
    print(line, flush=True)
