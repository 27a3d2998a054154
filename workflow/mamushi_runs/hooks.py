"""What happens at the begin and the end of a run, in the process that the user started.

Snakemake calls neither in its jobs (they run with --no-hooks), nor in dry runs, for --unlock or
when there is nothing to do.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple


class Parsed(NamedTuple):
    """A workflow that has been read, and the folder that it runs in."""

    workflow: Any
    config: Mapping[str, Any]
    folder: str


parsed: list[Parsed] = []
"""At most the last one, for ``mamushi_runs.commands.plan``: a dry run whose graph it looks at."""


def read(workflow: Any, config: Mapping[str, Any]) -> None:
    """When the Snakefile has been read."""
    parsed[:] = [Parsed(workflow, config, os.getcwd())]


_offered: list[tuple[Callable[[], None], Callable[[bool], None]]] = []


def offer(begin: Callable[[], None], end: Callable[[bool], None]) -> None:
    """What ``started`` and ``ended`` do: the Snakefile's own, of the last one that was read."""
    _offered[:] = [(begin, end)]


def started() -> None:
    """For ``onstart:`` of a workflow that imports this one: Snakemake skips ours then."""
    _offered[-1][0]()


def ended(succeeded: bool) -> None:
    """For ``onsuccess:`` and ``onerror:`` of a workflow that imports this one."""
    _offered[-1][1](succeeded)


def begin(workflow: Any, config: Mapping[str, Any]) -> None:
    """Before the first job. Raises ``UserError`` where the run must not start."""
    from mamushi_runs import failures
    from mamushi_runs.forecast import account
    from mamushi_runs.guard import session as guard

    guard.begin(workflow)
    failures.listen(workflow)
    _say(lambda: account.begin(workflow, config))


def end(workflow: Any, config: Mapping[str, Any], *, succeeded: bool) -> None:
    """After the last job."""
    from mamushi_runs import failures, summary
    from mamushi_runs.forecast import account
    from mamushi_runs.guard import session as guard

    _say(lambda: account.end(workflow, succeeded=succeeded))
    if succeeded:
        _say(lambda: summary.made(workflow))
    _say(start_page)
    guard.end(workflow, succeeded=succeeded)
    # Last, where one looks first.
    _say(failures.told)


def start_page() -> str | None:
    """Make the start page of what is there now, whatever target was asked for: a rule's inputs
    would have to name it beforehand. After a failure it links what was made before it."""
    from mamushi.evidence.start import write

    page = write(Path("results"))
    return None if page is None else f"Start page: {page}"


def _say(account: Callable[[], str | None]) -> None:
    """Print what ``account`` gives. Whatever goes wrong there is told and does no more: a run must
    not stop, nor be called a failure, for what is said of it."""
    try:
        said = account()
    except Exception as error:
        said = f"No account of the run: {type(error).__name__}: {error}"
    if said is not None:
        print(said, file=sys.stderr, flush=True)
