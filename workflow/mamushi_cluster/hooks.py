"""What happens at the begin and the end of a run, in the process that the user started: one run per
folder, one import of libraries for short jobs, an end within seconds, and a start page.

Snakemake calls neither in its jobs (they run with --no-hooks), nor in dry runs, for --unlock or
when there is nothing to do.
"""

import contextlib
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType

from mamushi.config.kinds import Config
from mamushi.errors import UserError
from mamushi.running.interruption import Notice, handle_signals
from mamushi.running.locks import exclusive
from mamushi.running.stage import stages
from mamushi_cluster import warm

MINE = Path("mine.yaml")
"""The configuration that `init` writes unless told otherwise."""
LOCK = Path(".snakemake/mamushi-run.lock")
"""In the working folder: locked by its main process. Unlike Snakemake's, which survives a kill,
this lock is the kernel's."""
STOPPING = (
    b"\nmamushi: stopping; jobs that run are asked to end, and the same command goes on with what "
    b"is there. Once more ends it without waiting for them.\n"
)
CONFIG_TO = "MAMUSHI_CONFIG_TO"
"""A variable: the file to which the Snakefile writes its configuration, for `mamushi plan`."""
OF_JOBS = (
    *("mamushi.cli", "mamushi.selection.scores"),
    *("mamushi.lm.loading", "mamushi.lm.perplexity", "mamushi.lm.training"),
    "mamushi_cluster.preloaded",
)
"""What nearly all jobs import of this package, beside the modules of stages."""
started: Callable[[], None]
"""Our ``onstart:``, for a workflow that imports this one: Snakemake skips it then."""
ended: Callable[[bool], None]
"""Our ``onsuccess:`` or ``onerror:``, as well."""
_signal = Notice()
_closing = contextlib.ExitStack()
"""What ends with the run."""


def only_run() -> contextlib.AbstractContextManager[None]:
    """Make this process the only one that makes files in the working folder, within a block. Raises
    ``UserError`` when another one does."""
    do = "wait until it has ended, or stop it with Ctrl-C or `kill`; its jobs end with it"
    busy = UserError("another run works in this folder", where=Path.cwd(), do=do)
    return exclusive(LOCK, "works in this folder", busy)


def begin(config: Config) -> None:
    """Prepare a run before its first job. Raises ``UserError`` where it must not start."""
    _closing.enter_context(only_run())
    _closing.enter_context(handle_signals(_stop, (signal.SIGTERM, signal.SIGINT)))
    # Where most of what jobs take is their imports, one process does them for all.
    has_tiny = any("family" in model for model in config["models"].values())
    if has_tiny and os.environ.get(warm.SOCKET) not in ("off", warm.IN_SERVER):
        modules = {entry.module.__name__ for entry in stages().values()}
        _closing.callback(os.environ.pop, warm.SOCKET)
        _closing.enter_context(warm.start_server([*warm.LIBRARIES, *OF_JOBS, *sorted(modules)]))


def end(configfiles: Iterable[str | Path]) -> None:
    """Close a run after its last job, and report on it."""
    print_start_page(configfiles)
    _closing.close()
    for thread in threading.enumerate():
        # By these Snakemake wakes its scheduler; the process would wait for them.
        if isinstance(thread, threading.Timer):
            thread.cancel()


def _stop(number: int, frame: FrameType | None) -> None:
    """Answer the first signal: say so, ask the jobs to end, and raise ``KeyboardInterrupt``, on
    which Snakemake waits for them; on SIGTERM it does not ask them (snakemake #448). The second
    one ends this process at once."""
    import psutil  # type: ignore[import-untyped]

    is_first = _signal.received is None
    _signal.note(number, frame)
    if is_first:
        with contextlib.suppress(OSError):
            # Not by print, in whose middle the signal may have come.
            os.write(2, STOPPING)
        for job in psutil.Process().children():
            with contextlib.suppress(psutil.Error):
                job.terminate()
        raise KeyboardInterrupt


def print_start_page(configfiles: Iterable[str | Path] = ()) -> None:
    """Make the start page of what is there now, also after a failure, for a run with these
    configurations, and say where it is. A rule would have to name its inputs beforehand."""
    from mamushi.registry import additions

    # A command of this folder takes its `mine.yaml` by itself.
    names = [os.path.relpath(path) for path in configfiles]
    names = [] if names == [str(MINE)] else names
    for write in additions("start_page"):
        try:
            if page := write(Path("results"), names):
                print(f"Start page: {page}", file=sys.stderr, flush=True)
        except Exception as error:
            print(f"No start page: {error}", file=sys.stderr, flush=True)


def share(packages: str, **values: object) -> None:
    """Let the commands that this process starts find the package, its Python and how to run.
    ``packages`` is the folder of the package. ``values``, by the names of variables, have no effect
    on results and are therefore no parameters of rules. Through the environment, since
    ``shell.prefix`` would reach into the rules of a workflow that imports this one."""
    for name, folder in (("PYTHONPATH", packages), ("PATH", os.path.dirname(sys.executable))):
        entries = os.environ.get(name, "").split(os.pathsep)
        others = [entry for entry in entries if entry not in ("", folder)]
        os.environ[name] = os.pathsep.join([folder, *others])
    os.environ.update({name: json.dumps(value, sort_keys=True) for name, value in values.items()})
