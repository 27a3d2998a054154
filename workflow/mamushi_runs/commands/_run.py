"""The workflow, started by a command for people: Snakemake in a process of its own."""

from __future__ import annotations

import argparse
import itertools
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mamushi.commands import _as_json
from mamushi.errors import UserError, located
from mamushi.registry import tree
from mamushi.running.interruption import Stopped, wait_for
from mamushi_runs import guard
from mamushi_runs.hooks import MINE
from mamushi_runs.record import date_back

RUNNING = ("--quiet", "rules", "--nolock")
"""Our own lock ends with the process: one of Snakemake's, which a kill leaves, stands in no way."""
PROFILE = "gpu"
"""Where a command runs unless told otherwise: on this machine."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add how to run, for every command that starts the workflow."""
    dry = "show what would run, and run nothing"
    parser.add_argument("-n", "--dry-run", action="store_true", help=dry)
    parser.add_argument(
        "--profile",
        default=PROFILE,
        help="where to run: the name of one of the workflow's profiles (slurm for a cluster), or "
        "the folder of your own (default: this machine, with its GPU if it has one)",
    )
    parser.add_argument("--cores", type=int, metavar="N", help="cores to use (default: all)")
    parser.add_argument(
        "--snakemake-args",
        default="",
        metavar="ARGS",
        help="more options of Snakemake, after an equals sign: ='--resources gpu=2'",
    )


def configfile(parser: argparse.ArgumentParser) -> None:
    """Add which configuration a command takes."""
    words = "configurations, the later laid over the earlier (default: mine.yaml, if it is here)"
    parser.add_argument("--configfile", nargs="+", type=Path, metavar="FILE", help=words)


def of_targets(parser: argparse.ArgumentParser, words: str) -> None:
    """Add targets of the workflow, from which configuration and how to make them."""
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"{words} (default: all)")
    configfile(parser)
    arguments(parser)
    _as_json.argument(parser)


def required(args: argparse.Namespace) -> list[Path]:
    """Return the configurations for a run in the working folder: the given ones, else `mine.yaml`;
    none where the profile names its own, or the folder has Snakemake's. Raises ``UserError`` where
    it has none: the paper's grid is not to start by an oversight."""
    if args.configfile or sets(profile(args.profile), "configfile"):
        return [*(args.configfile or ())]
    if MINE.is_file() or Path("config.yaml").is_file():
        return [MINE] * MINE.is_file()
    do = "write one with mamushi init, or name one in --configfile"
    raise UserError("no configuration mine.yaml in this folder", where=Path.cwd(), do=do)


def profile(name: str) -> Path:
    """Return the folder of a profile: of one's own, else one of the workflow's. Raises
    ``UserError`` without one."""
    ours = tree() / "profiles"
    for folder in (Path(name), ours / name, tree() / name):
        if folder.is_dir():
            return folder
    names = sorted(path.name for path in ours.iterdir() if path.name != "default")
    do = f"name a folder, or one of {', '.join(names)}"
    raise UserError(f"no profile {name!r}", where="--profile", do=do)


def sets(profile: Path, option: str) -> bool:
    """Return whether a profile sets an option of Snakemake."""
    lines = [path.read_text("utf-8").splitlines() for path in profile.glob("*.yaml")]
    return any(line.startswith(f"{option}:") for line in itertools.chain(*lines))


def read(configfile: Path) -> dict[str, Any]:
    """Read a configuration. Raises ``UserError`` where it is not there, and what YAML raises."""
    import yaml

    if not configfile.is_file():
        raise UserError(f"no file {str(configfile)!r}", where="--configfile", do="check the path")
    with located(configfile):
        return dict(yaml.safe_load(configfile.read_text(encoding="utf-8")) or {})


def check(configfiles: Sequence[Path], options: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the complete configuration, as the workflow puts it together, with ``options`` laid
    over it. Raises ``UserError`` for mistakes in it, which Snakemake would tell amid lines of its
    own."""
    from mamushi.config.complete import complete, laid_over

    paper, ours = tree() / "config.yaml", Path("config.yaml")
    files = [*([ours] if ours.is_file() and not ours.samefile(paper) else []), *configfiles]
    if not files or any(read(path).get("extends") == "paper" for path in files):
        files = [paper, *files]
    merged: dict[str, Any] = {}
    for item in (*map(read, files), options or {}):
        merged = laid_over(merged, item)
    return complete(merged)


def is_dry(args: argparse.Namespace) -> bool:
    """Return whether nothing is to run."""
    return args.dry_run or bool({"-n", "--dry-run"} & {*args.snakemake_args.split()})


def line(
    targets: Sequence[str], configfiles: Sequence[Path], args: argparse.Namespace
) -> list[str]:
    """Return the options of Snakemake that make these targets. Raises ``UserError`` for a profile
    or a configuration that is not there."""
    options = shlex.split(args.snakemake_args)
    folder = profile(args.profile)
    # What options put together, or the folder alone, is left to Snakemake.
    is_here = configfiles and not {"--config", "-C"} & {*options}
    forced = date_back(check(configfiles)) if is_here else []
    return [
        *("--snakefile", str(tree() / "Snakefile"), "--profile", str(folder)),
        *(("--dry-run", "--quiet", "rules") if is_dry(args) else RUNNING),
        *(("--cores", str(args.cores)) if args.cores else ()),
        *(("--configfile", *map(str, configfiles)) if configfiles else ()),
        *(("--forcerun", *forced) if forced else ()),
        *(*options, "--", *targets),
    ]


def run(targets: Sequence[str], configfiles: Sequence[Path], args: argparse.Namespace) -> int:
    """Make these targets in the working folder; return Snakemake's exit status. Ctrl-C and SIGTERM
    reach Snakemake, which ends its jobs; this waits for that, and raises ``Ended``. Raises
    ``UserError`` as ``line``."""
    words = line(targets, configfiles, args)
    if not is_dry(args):
        # Snakemake takes it; here it is refused in one line.
        guard.lock_folder(Path.cwd()).release()
    return _wait(words)


class Ended(Stopped):
    """Snakemake and its jobs have ended, on a signal that the process got which waited for them."""

    def __init__(self, number: int) -> None:
        self.status = 128 + number
        cause = "interrupted" if number == signal.SIGINT else f"ended by {signal.strsignal(number)}"
        BaseException.__init__(self, f"{cause}; the same command goes on with what is there")


def _wait(words: Sequence[str]) -> int:
    """Run Snakemake to its end; return its exit status. Raises ``Ended`` after a signal."""
    # See `_as_json.alone`; the jobs print as well.
    out = 2 if sys.stdout is sys.stderr else None
    program = [sys.executable, "-P", "-m", "snakemake", *words]
    # In a session of its own, so that a terminal's Ctrl-C is passed on once.
    status, received = wait_for(subprocess.Popen(program, stdout=out, start_new_session=True))
    if received:
        raise Ended(received)
    return status if status >= 0 else 128 - status
