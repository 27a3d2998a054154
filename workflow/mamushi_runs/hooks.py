"""What happens at the begin and the end of a run, in the process that the user started.

Snakemake calls neither in its jobs (they run with --no-hooks), nor in dry runs, for --unlock or
when there is nothing to do.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mamushi.config.grid import is_tiny
from mamushi.config.kinds import Config
from mamushi.running import warm
from mamushi.running.stage import stages
from mamushi_runs import guard

MINE = Path("mine.yaml")
"""The configuration that `init` writes unless told otherwise."""
parsed: list[tuple[Any, Config]] = []
"""At most the last workflow that was read, and its configuration, for
``mamushi_runs.commands.plan``: a dry run whose graph it looks at."""
started: Callable[[], None]
"""Our ``onstart:``, for a workflow that imports this one: Snakemake skips it then."""
ended: Callable[[bool], None]
"""Our ``onsuccess:`` or ``onerror:``, as well."""
FEW_JOBS = 4
OF_JOBS = ("mamushi.cli", "mamushi.selection.scores")
"""What nearly all jobs import of this package, beside the modules of stages."""
_closing = contextlib.ExitStack()
"""What ends with the run."""


def begin(workflow: Any, config: Config) -> None:
    """Prepare a run before its first job. Raises ``UserError`` where it must not start."""
    guard.begin(workflow)
    logging.getLogger("snakemake.logging").addHandler(Failures())
    names, models = [*config["models"]], config["models"].values()
    # Where most of what jobs take is their imports, one process does them for all.
    is_short = len([*workflow.dag.needrun_jobs()]) > FEW_JOBS
    is_short = is_short and all(model["contaminated"] for model in models)
    is_short = is_short or any(is_tiny(config, name) for name in names)
    is_off = guard.on_slurm(workflow) or os.environ.get(warm.SOCKET) in ("off", warm.IN_SERVER)
    if is_short and not is_off:
        are_vectors = all("embeddings" in model for model in models)
        libraries = warm.OF_VECTORS if are_vectors else warm.LIBRARIES
        # With it ends what it has started.
        _closing.callback(os.environ.pop, warm.SOCKET)
        modules = {entry.module.__name__ for entry in stages().values()}
        _closing.enter_context(warm.start([*libraries, *OF_JOBS, *sorted(modules)]))


class Failures(logging.Handler):
    """Prints of each job that fails its rule, its log and the last line in that, all of which
    ``--quiet rules`` leaves out."""

    def emit(self, record: logging.LogRecord) -> None:
        if getattr(record, "event", None) == "job_error" and not guard.stopping():
            rule, logs = record.__dict__["rule_name"], record.__dict__["log"] or ["no log"]
            there = [Path(log).read_text("utf-8", "replace") for log in logs if Path(log).is_file()]
            last = "\n".join(there).strip().rpartition("\n")[2] or "it said nothing"
            print(f"{rule} failed: {last}; see {logs[0]}", file=sys.stderr, flush=True)


def end(workflow: Any, config: Config, *, succeeded: bool) -> None:
    """Close a run after its last job, and report on it."""
    print_start_page(workflow.overwrite_configfiles, config)
    guard.end(workflow, succeeded=succeeded)
    _closing.close()


def print_start_page(configfiles: Sequence[str | Path] = (), config: Config | None = None) -> None:
    """Make the start page of what is there now, also after a failure, for a run with these
    configurations, which are ``config`` together, and say where it is. A rule would have to name
    its inputs beforehand, and know the targets; a run must not fail for a page."""
    from mamushi.rooms import additions

    # A command of this folder takes its `mine.yaml` by itself.
    names = [os.path.relpath(path) for path in configfiles]
    places = (Path("results"), [] if names == [str(MINE)] else names, config)
    for write in additions("start_page"):
        try:
            page = write(*places)
        except Exception as error:
            print(f"No start page: {error}", file=sys.stderr, flush=True)
        else:
            if page:
                print(f"Start page: {page}", file=sys.stderr, flush=True)


def share(packages: str, **values: object) -> None:
    """Let the commands that this process starts find the package, its Python and how to run.

    ``packages`` is the folder of the package. ``values``, by the names of variables, have no effect
    on results and are therefore no parameters of rules. Through the environment, since
    ``shell.prefix`` would reach into the rules of a workflow that imports this one.
    """
    for name, folder in (("PYTHONPATH", packages), ("PATH", os.path.dirname(sys.executable))):
        entries = os.environ.get(name, "").split(os.pathsep)
        others = [entry for entry in entries if entry not in ("", folder)]
        os.environ[name] = os.pathsep.join([folder, *others])
    os.environ.update({name: json.dumps(value, sort_keys=True) for name, value in values.items()})
