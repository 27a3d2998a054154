"""What happens at the begin and the end of a run, in the process that the user started.

Snakemake calls neither in its jobs (they run with --no-hooks), nor in dry runs, for --unlock or
when there is nothing to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def begin(workflow: Any, config: Mapping[str, Any]) -> None:
    """Before the first job. Raises ``UserError`` where the run must not start."""
    from mamushi_runs import guard

    guard.begin(workflow)


def end(workflow: Any, config: Mapping[str, Any], *, succeeded: bool) -> None:
    """After the last job."""
    from mamushi_runs import guard

    guard.end(succeeded=succeeded)
