"""The workflow, started by a command for people: Snakemake in a process of its own."""

from __future__ import annotations

import argparse
import itertools
import os
import shlex
import signal
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from mamushi.errors import UserError, located
from mamushi.io.files import check_writable
from mamushi.registry import tree
from mamushi.running.interruption import Stopped, handled
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
    parser.add_argument("--cores", type=_count, metavar="N", help="cores to use (default: all)")
    parser.add_argument(
        "--snakemake-args",
        default="",
        metavar="ARGS",
        help="more options of Snakemake, after an equals sign: ='--resources gpu=2'",
    )


def _count(text: str) -> int:
    """Return a number of cores."""
    if text.isdecimal() and int(text) > 0:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no number of cores; give 1 or more")


def configfile(parser: argparse.ArgumentParser) -> None:
    """Add which configuration a command takes."""
    help_text = (
        "configurations, the later laid over the earlier (default: mine.yaml, if it is here)"
    )
    parser.add_argument("--configfile", nargs="+", type=Path, metavar="FILE", help=help_text)


def configured(explicit: Sequence[Path] | None, profile: Path | None) -> list[Path]:
    """Return the configurations to run with: the given ones, else the folder's `mine.yaml`; none
    where that is not there, or the profile names its own."""
    if explicit:
        return list(explicit)
    named = profile is not None and "configfile" in settings(profile)
    return [] if named or not MINE.is_file() else [MINE]


def required(args: argparse.Namespace) -> list[Path]:
    """Return the configurations for a run in the working folder. Raises ``UserError`` where it has
    none: the paper's grid is not to start by an oversight."""
    folder = profile(args.profile)
    content = configured(args.configfile, folder)
    if not content and "configfile" not in settings(folder) and not Path("config.yaml").is_file():
        do = "write one with mamushi init, or name one in --configfile"
        raise UserError("no configuration mine.yaml in this folder", where=Path.cwd(), do=do)
    return content


def completed(
    words: Sequence[str], named: str | None, configfiles: Sequence[Path] | None
) -> list[str]:
    """Return options and targets of Snakemake with what `mamushi run` would add to them in this
    folder: the workflow, a profile by its name and the configuration. What the words say
    themselves, and a workflow of the folder's own, is left to them."""
    spoken = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    spoken.add_argument("-s", "--snakefile")
    spoken.add_argument("--profile")
    spoken.add_argument("--configfile", "--configfiles", nargs="+", type=Path)
    output = _spoken(spoken, words)
    ours = tree() / "Snakefile"
    if output.snakefile or (Path("Snakefile").is_file() and not Path("Snakefile").samefile(ours)):
        return [*words]
    folder = profile(named or output.profile) if named or output.profile else None
    content = configured(configfiles or output.configfile, folder)
    if not (content or folder or words or Path("config.yaml").is_file()):
        # The paper's grid, which nobody asked for.
        do = "write one with mamushi init, or name a target, --configfile or --profile"
        raise UserError("no configuration mine.yaml in this folder", where=Path.cwd(), do=do)
    if content == [MINE] and folder is None:
        folder = profile(PROFILE)
    added = []
    check(content, words)
    if content and not output.configfile:
        added += ["--configfile", *map(str, content)]
    if folder is not None and not output.profile:
        added += ["--profile", str(folder)]
    # First, and an option with one value last: --configfile would take the targets for its own.
    return [*added, "--snakefile", str(ours), *words]


def _spoken(options: argparse.ArgumentParser, words: Sequence[str]) -> argparse.Namespace:
    """Return what Snakemake's words say of these options, whose others are left to it."""
    try:
        return options.parse_known_args(words)[0]
    except argparse.ArgumentError as error:
        raise UserError(str(error), where="options of Snakemake", do="give it a value") from None


def profile(name: str) -> Path:
    """Return the folder of a profile: of one's own, else one of the workflow's. Raises
    ``UserError`` without one."""
    ours = tree() / "profiles"
    for folder in (Path(name), ours / name, tree() / name):
        if folder.is_dir():
            return folder
    profile_names = sorted(path.name for path in ours.iterdir() if path.name != "default")
    do = f"name a folder, or one of {', '.join(profile_names)}"
    raise UserError(f"no profile {name!r}", where="--profile", do=do)


def settings(profile: Path) -> dict[str, Any]:
    """Return what a profile sets."""
    import yaml

    content: dict[str, Any] = {}
    for path in sorted((*profile.glob("config*.yaml"), *profile.glob("profile*.yaml"))):
        content |= yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    return content


def read(configfile: Path) -> dict[str, Any]:
    """Read a configuration. Raises ``UserError`` where it has no keys, and what YAML raises."""
    import yaml

    with located(configfile):
        content = yaml.safe_load(configfile.read_text(encoding="utf-8"))
    if not isinstance(content, dict):
        raise UserError("has no keys", where=configfile, do="write it as mamushi init does")
    return content


def check(
    configfiles: Sequence[Path], words: Sequence[str], options: Mapping[str, Any] | None = None
) -> dict[str, Any] | None:
    """Return the complete configuration, with ``more`` laid over it. Raises ``UserError`` for
    mistakes in it, which Snakemake would tell amid lines of its own. What only that puts together,
    with options among its ``words`` or with a folder's own file, is left to it: None."""
    from mamushi.config.complete import complete, laid_over
    from mamushi.config.reading import check_twice
    from mamushi.data import rows

    check_files("--configfile", configfiles)
    content = [read(path) for path in configfiles]
    paper = tree() / "config.yaml"
    has_config = Path("config.yaml").is_file() and not Path("config.yaml").samefile(paper)
    if not content or has_config or {"--config", "-C"} & {word.partition("=")[0] for word in words}:
        return None
    files = [*configfiles]
    if any(item.get("extends") == "paper" for item in content):
        content, files = [read(paper), *content], [paper, *files]
    check_twice(files)
    merged: dict[str, Any] = {}
    for item in (*content, options or {}):
        merged = laid_over(merged, item)
    rows.check_datasets(full := complete(merged))
    return full


def grid(*configfiles: Path) -> dict[str, list[Any]]:
    """Return what a configuration of one's own compares, of which the later files are laid over the
    earlier. Raises ``UserError`` where it does not say."""
    content: dict[str, Any] = {}
    for explicit in (read(path).get("grid") for path in configfiles):
        content |= explicit if isinstance(explicit, dict) else {}
    try:
        return content | {key: [*content[key]] for key in ("datasets", "models", "seeds")}
    except (KeyError, TypeError) as error:
        where = configfiles[-1] if configfiles else "--configfile"
        problem, do = "its grid names no datasets, models and seeds", "see mamushi init"
        raise UserError(problem, where=where, do=do) from error


def cells(grid: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return dataset, model and seed of each cell of a grid."""
    axes = ("datasets", "models", "seeds")
    return [
        dict(zip(("dataset", "model", "seed"), values, strict=True))
        for values in itertools.product(*(grid[axis] for axis in axes))
    ]


def check_files(option: str, files: Iterable[str | Path]) -> None:
    """Raise ``UserError`` for the first file that is not there."""
    for file in map(Path, files):
        if not file.is_file():
            raise UserError(f"no file {str(file)!r}", where=option, do="check the path")


def is_dry(args: argparse.Namespace) -> bool:
    """Return whether nothing is to run."""
    return args.dry_run or "--dry-run" in args.snakemake_args.split()


def run(
    target_paths: Sequence[str],
    configfiles: Sequence[Path],
    args: argparse.Namespace,
    report: Path | None = None,
) -> int:
    """Make these targets in the working folder, or a ``report`` on them; returns Snakemake's exit
    status. Ctrl-C and SIGTERM reach Snakemake, which ends its jobs; this waits for that, and raises
    ``Ended``. Raises ``UserError`` for a profile or a configuration that is not there."""
    options = shlex.split(args.snakemake_args)
    folder = profile(args.profile)
    config = check(configfiles, options)
    forced = date_back(config) if config else []
    if report:
        check_writable(report)
    line = [
        *("--snakefile", str(tree() / "Snakefile"), "--profile", str(folder)),
        *(("--dry-run", "--quiet", "rules") if is_dry(args) else RUNNING),
        *(("--cores", str(args.cores)) if args.cores else ()),
        *(("--report", str(report)) if report else ()),
        *(("--configfile", *map(str, configfiles)) if configfiles else ()),
        *(("--forcerun", *forced) if forced else ()),
        *(*options, "--", *target_paths),
    ]
    if not is_dry(args):
        # Snakemake takes it; here it is refused in one line.
        guard.lock_folder(Path.cwd()).release()
    status, received = _wait(line)
    if received:
        raise Ended(received)
    return status if status >= 0 else 128 - status


class Ended(Stopped):
    """Snakemake and its jobs have ended, on a signal that the process got which waited for them."""

    def __init__(self, number: int) -> None:
        self.status = 128 + number
        cause = "interrupted" if number == signal.SIGINT else f"ended by {signal.strsignal(number)}"
        BaseException.__init__(self, f"{cause}; the same command goes on with what is there")


def _wait(line: Sequence[str]) -> tuple[int, int]:
    """Run Snakemake to its end, in a process that has imported what this one has. Return its exit
    status, and the last signal that this process got, else 0; each reaches Snakemake as SIGTERM."""
    received: list[int] = []
    # A forked process does not clean up what it makes there.
    with tempfile.TemporaryDirectory(prefix="mamushi-") as folder:
        process = get_context("fork").Process(target=_snakemake, args=(line, folder))
        process.start()

        def pass_on(number: int, _: object) -> None:
            received.append(number)
            process.terminate()

        with handled(pass_on, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)):
            process.join()
    return process.exitcode or 0, received[-1] if received else 0


def _snakemake(line: Sequence[str], folder: str) -> None:
    """Be Snakemake, in a session of its own, so that a terminal's Ctrl-C is passed on once."""
    os.setsid()
    if sys.stdout is sys.stderr:
        # See `_as_json.alone`; the jobs print as well.
        os.dup2(2, 1)
    tempfile.tempdir, sys.argv[1:] = folder, line
    from snakemake.cli import main

    main(line)
