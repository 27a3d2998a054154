"""The workflow, started by a command for people: Snakemake in a process of its own."""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from mamushi.errors import UserError, located
from mamushi.registry import tree
from mamushi.running.interruption import Stopped, wait_for
from mamushi_cluster import hooks
from mamushi_cluster.hooks import MINE
from mamushi_cluster.record import date_back

RUNNING = ("--nolock",)
"""Our own lock ends with the process: one of Snakemake's, which a kill leaves, stands in no way."""
FILES_HELP = "Configurations, the later laid over the earlier; else mine.yaml, if it is here."
Files = Annotated[list[Path] | None, Parameter(help=FILES_HELP)]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class How:
    """How to run, for every command that starts the workflow."""

    dry_run: Annotated[bool, Parameter(alias="-n")] = False
    """Show what would run, and run nothing."""
    profile: str = "gpu"
    """A profile of the workflow (slurm for a cluster, gpu for this machine) or a folder."""
    cores: int | None = None
    """Cores to use, else all."""
    snakemake_args: Annotated[str, Parameter(allow_leading_hyphen=True)] = ""
    """More options of Snakemake, as '--resources gpu=2'."""


def run_configs(configfile: Files, profile: str = How.profile) -> list[Path]:
    """Return the configurations for a run in the working folder: the given ones, else `mine.yaml`;
    none where the profile names its own, or the folder has Snakemake's. Raises ``UserError`` where
    it has none: the paper's grid is not to start by an oversight."""
    profiles = profile_folder(profile).glob("*.yaml")
    if configfile or any("configfile" in read(path) for path in profiles):
        return [*(configfile or ())]
    if MINE.is_file() or Path("config.yaml").is_file():
        return [MINE] * MINE.is_file()
    do = "write one with mamushi init, or name one in --configfile"
    raise UserError("no configuration mine.yaml in this folder", where=Path.cwd(), do=do)


def profile_folder(name: str) -> Path:
    """Return the folder of a profile: one's own, else one of the workflow's; of a name that only
    Snakemake may know, that name."""
    ours = tree() / "profiles" / name
    return ours if ours.is_dir() and not Path(name).is_dir() else Path(name)


def read(configfile: Path) -> dict[str, Any]:
    """Read a configuration. Raises ``OSError`` where it is not there, and what YAML raises."""
    import yaml

    with located(configfile):
        return dict(yaml.safe_load(configfile.read_text(encoding="utf-8")) or {})


def check(configfiles: Sequence[Path], options: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the complete configuration, as the workflow puts it together, with ``options`` laid
    over it. Raises ``UserError`` for mistakes in it."""
    from mamushi.config.complete import complete, deep_merge

    paper, ours = tree() / "config.yaml", Path("config.yaml")
    files = [*([ours] if ours.is_file() and not ours.samefile(paper) else []), *configfiles]
    written = [*map(read, files), options or {}]
    if not files or any(one.get("extends") == "paper" for one in written):
        written = [read(paper), *written]
    return complete(reduce(deep_merge, written, {}))


def fetch(configfiles: Iterable[Path], *, refresh: bool = False) -> None:
    """Fetch what lies at the URLs of configurations, and of the folder's own: what is not here and,
    with ``refresh``, what may be another by now. Raises ``UserError`` as ``fetch_copy``."""
    for path in [*filter(Path.is_file, [Path("config.yaml")]), *configfiles]:
        if "://" in os.path.expandvars(path.read_text(encoding="utf-8")):
            from mamushi_extras.remote.urls import fetch_copies

            fetch_copies(read(path), refresh=refresh)


def snakemake_words(targets: Sequence[str], configfiles: Sequence[Path], how: How) -> list[str]:
    """Return the options of Snakemake that make these targets. Raises ``UserError`` for mistakes in
    the configuration."""
    options = shlex.split(how.snakemake_args)
    # What options put together, or the folder alone, is left to Snakemake.
    is_here = configfiles and not {"--config", "-C"} & {*options}
    forced = date_back(check(configfiles)) if is_here else []
    return [
        *("--snakefile", str(tree() / "Snakefile"), "--profile", str(profile_folder(how.profile))),
        *(("--dry-run", "--quiet", "rules") if how.dry_run else RUNNING),
        *(("--cores", str(how.cores)) if how.cores else ()),
        *(("--configfile", *map(str, configfiles)) if configfiles else ()),
        *(("--forcerun", *forced) if forced else ()),
        *(*options, "--", *targets),
    ]


def run(targets: Sequence[str], configfiles: Sequence[Path], how: How) -> int:
    """Make these targets; return Snakemake's exit status. After a signal Snakemake ends its jobs,
    and this raises ``Stopped``. Raises ``UserError`` as ``snakemake_words`` and ``fetch``."""
    words = snakemake_words(targets, configfiles, how)
    if not how.dry_run:
        # Snakemake holds the folder; here it is refused in one line.
        with hooks.only_run():
            fetch(configfiles)
    return _run_snakemake(words)


def _run_snakemake(words: Sequence[str]) -> int:
    """Run Snakemake to its end; return its exit status. Raises ``Stopped`` after a signal."""
    # As a command prints that is asked for JSON; the jobs print as well.
    out = 2 if sys.stdout is sys.stderr else None
    program = [sys.executable, "-P", "-m", "snakemake", *words]
    # In a session of its own, so that a terminal's Ctrl-C is passed on once.
    status, received = wait_for(subprocess.Popen(program, stdout=out, start_new_session=True))
    if received:
        raise Stopped(received)
    return status if status >= 0 else 128 - status
