"""What happens at the begin and the end of a run, in the process that the user started.

Snakemake calls neither in its jobs (they run with --no-hooks), nor in dry runs, for --unlock or
when there is nothing to do.
"""

from __future__ import annotations

import contextlib
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
OF_JOBS = ("mamushi.cli", "mamushi.selection.pool")
"""What nearly all jobs import of this package, beside the modules of stages."""
_closing = contextlib.ExitStack()
"""What ends with the run."""


def begin(workflow: Any, config: Config) -> None:
    """Prepare a run before its first job. Raises ``UserError`` where it must not start."""
    guard.begin(workflow)
    logging.getLogger("snakemake.logging").addHandler(Failures())
    names, models = [*config["models"]], config["models"].values()
    # Where most of what a job takes is its imports, one process does them for all.
    is_short = all(model["contaminated"] for model in models)
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
    if succeeded and any(job.rule.name.endswith("manifests") for job in workflow.dag.jobs):
        print("Lists, what they are worth and the next step: mamushi show", file=sys.stderr)
    guard.end(workflow, succeeded=succeeded)
    _closing.close()


def print_start_page(configfiles: Sequence[str | Path], config: Config) -> None:
    """Make the start page, and say where it is. A run must not stop, nor be called a failure, for a
    page that fails."""
    try:
        text = start_page(configfiles, config)
    except Exception as error:
        text = f"No account of the run: {type(error).__name__}: {error}"
    if text is not None:
        print(text, file=sys.stderr, flush=True)


def start_page(configfiles: Sequence[str | Path] = (), config: Config | None = None) -> str | None:
    """Make the start page of what is there now, also after a failure, for a run with these
    configurations, which are ``config`` together. A rule would have to name its inputs beforehand,
    and know the targets."""
    from mamushi.rooms import additions

    # A command of this folder takes its `mine.yaml` by itself.
    names = [os.path.relpath(path) for path in configfiles]
    places = (Path("results"), [] if names == [str(MINE)] else names, config)
    pages = filter(None, [write(*places) for write in additions("start_page")])
    return "\n".join(f"Start page: {page}" for page in pages) or None
