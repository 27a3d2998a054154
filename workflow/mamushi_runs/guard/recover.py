"""After a crash: show what is left of a run, settle it, and remove Snakemake's stale lock.

With jobs left in SLURM, one of --wait, --adopt and --cancel says what becomes of them. Then give
the command of the run again. Options of Snakemake that the run was started with (--profile,
--configfile) go behind `--`.
"""

from __future__ import annotations

import argparse
import base64
import binascii
import os
import subprocess
import sys
from pathlib import Path

from mamushi.errors import UserError
from mamushi_runs.guard import doubles, squeue

SNAKEFILE = Path(__file__).parents[3] / "Snakefile"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command line's options."""
    choice = parser.add_mutually_exclusive_group()
    for name, what in doubles.POLICIES.items():
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
    """Returns 0 when the run can be started again, 1 when a choice is still to be made.

    Raises ``UserError`` when a run lives in the folder, or SLURM or Snakemake fails.
    """
    folder: Path = args.directory.resolve()
    if not (folder / ".snakemake").is_dir():
        raise UserError("no run was ever started here", where=folder, do="give its --directory")
    living = doubles.main_process(folder)
    if living is not None:
        raise UserError(
            f"a run lives here ({living}): there is nothing to recover",
            where=folder,
            do="stop it first with Ctrl-C or `kill`, if it is to end",
        )
    jobs = left(folder)
    orphans = doubles.local_orphans(folder)
    locked = any((folder / ".snakemake" / "locks").glob("*.lock"))
    started = incomplete(folder)
    print(f"SLURM jobs left      {doubles.named(jobs) if jobs else 'none'}")
    print(f"commands left here   {', '.join(f'pid {pid}' for pid in orphans) or 'none'}")
    print(f"Snakemake's lock     {'stale' if locked else 'none'}")
    print(f"begun, not finished  {_few(started)}", flush=True)
    if jobs and args.choice is None:
        print("\nChoose what becomes of the jobs:")
        for name, what in doubles.POLICIES.items():
            print(f"  --{name:<8} {what}")
        return 1
    if jobs and args.choice != "adopt":
        doubles.end(folder, jobs, cancelled=args.choice == "cancel", say=_say)
    if locked:
        unlock(folder, args.snakemake)
    prefix = f"{doubles.CHOICE}=adopt " if jobs and args.choice == "adopt" else ""
    print(f"\nGive the command of the run again{f', with {prefix}before it' if prefix else ''}.")
    return 0


def left(folder: Path) -> list[squeue.Job]:
    """The SLURM jobs of this folder. Raises ``UserError`` when SLURM does not answer."""
    if not squeue.available():
        return []
    try:
        return squeue.jobs_of(folder)
    except squeue.Unanswered as error:
        raise UserError(
            f"SLURM does not answer ({error})",
            where="squeue",
            do="try again when it does; nothing is lost meanwhile",
        ) from None


def incomplete(folder: Path) -> list[str]:
    """The outputs whose jobs began and did not finish, as Snakemake marked them.

    Their jobs run again; what a job finished after its main process had died is marked no more.
    """
    marks = folder / ".snakemake" / "incomplete"
    names = []
    for path in marks.rglob("*"):
        if path.is_file():
            # A long name is cut into folders, each marked with @.
            parts = [part.removeprefix("@") for part in path.relative_to(marks).parts]
            try:
                names.append(base64.urlsafe_b64decode("".join(parts)).decode())
            except (binascii.Error, UnicodeDecodeError):
                continue
    return sorted(names)


def unlock(folder: Path, options: list[str]) -> None:
    """Remove Snakemake's lock, by Snakemake itself. Raises ``UserError`` when it refuses."""
    # So that none can start between the look and the removal.
    held = doubles.hold(folder, _say)
    try:
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
    finally:
        if held is not None:
            held.release(settled=False)
    if done.returncode:
        told = done.stdout.strip().splitlines() or ["no word"]
        raise UserError(
            f"could not remove Snakemake's lock: {' '.join(told[-5:])}",
            where=folder,
            do="give the run's own options behind `--`, such as `-- --configfile mine.yaml`",
        )
    print("Snakemake's lock is removed.")


def _few(names: list[str]) -> str:
    shown = ", ".join(names[: doubles.SHOWN])
    more = len(names) - doubles.SHOWN
    return (f"{shown} and {more} more" if more > 0 else shown) or "none"


def _say(line: str) -> None:
    print(line, flush=True)
