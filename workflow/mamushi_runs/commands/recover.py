"""After a crash: show what is left of a run, settle it, and remove Snakemake's stale lock.

With jobs left in SLURM, --wait or --cancel says what becomes of them. Then give the command of the
run again. It takes the configuration `mine.yaml` of the run's folder, if that is there; other
options of Snakemake that the run was started with (--configfile, --config) go behind `--`.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from mamushi.errors import UserError
from mamushi.registry import tree
from mamushi_runs import workflow
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
    """Return 0 when the run can be started again, 1 when a choice is still to be made. Raises
    ``UserError`` when a run lives in the folder, or SLURM or Snakemake fails."""
    folder: Path = args.directory.resolve()
    if not (folder / ".snakemake").is_dir():
        raise UserError("no run was ever started here", where=folder, do="give its --directory")
    # To the end, so that none starts between a look and what follows from it.
    with session.hold(folder) or contextlib.nullcontext():
        try:
            jobs = squeue.jobs_of(folder)
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
            settle(folder, jobs, cancelled=args.choice == "cancel")
        mine = workflow.configured(None, None, folder)
        unlock(folder, args.snakemake or [word for path in mine for word in ("--configfile", path)])
    _say("Snakemake's lock is removed. Give the command of the run again.")
    return 0


def settle(folder: Path, jobs: Sequence[squeue.Job], *, cancelled: bool) -> None:
    """Wait until none of the jobs is left, after cancelling them if so wished. Raises ``UserError``
    when they cannot be cancelled."""
    wanted = {job.id for job in jobs}
    if cancelled:
        try:
            squeue.cancel(sorted(wanted))
        except squeue.Unanswered as error:
            raise session.unanswered(error) from None
    before = ""
    while True:
        try:
            left = [job for job in squeue.jobs_of(folder) if job.id in wanted]
        except squeue.Unanswered as error:
            _say(f"SLURM does not answer ({error}); still waiting.")
        else:
            if not left:
                _say("All jobs of the earlier run have ended.")
                return
            if session.describe(left) != before:
                before = session.describe(left)
                _say(f"Waiting for {before}; Ctrl-C ends the wait.")
        time.sleep(squeue.POLL)


def unlock(folder: Path, options: Sequence[str | Path]) -> None:
    """Remove Snakemake's lock, by Snakemake itself. Raises ``UserError`` when it refuses."""
    line = [sys.executable, "-m", "snakemake", "--unlock", "--snakefile", str(SNAKEFILE)]
    if subprocess.run([*line, "--directory", str(folder), *options], check=False).returncode:
        raise UserError(
            "could not remove Snakemake's lock",
            where=folder,
            do="give the run's own options behind `--`, such as `-- --configfile mine.yaml`",
        )


def _say(line: str) -> None:
    print(line, flush=True)
