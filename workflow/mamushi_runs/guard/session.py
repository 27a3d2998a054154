"""The guard of a run as a whole: one main process, no doubles, no silent hang."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Any

from mamushi_runs.guard import doubles, unrecorded, watchdog

_HELD: list[doubles.Hold] = []


def begin(workflow: Any) -> None:
    """Before the first job, in the main process. Raises ``UserError`` where it must not start."""
    logger = logging.getLogger("snakemake.logging")
    folder = os.getcwd()
    slurm = getattr(workflow.executor_plugin, "name", None) == "slurm"
    held = doubles.hold(folder, logger.warning)
    try:
        _begin(workflow, folder, slurm=slurm, say=logger.warning)
        if held is not None and held.killed is not None:
            unrecorded.look_again(workflow, since=held.killed, say=logger.warning)
    except BaseException:
        # Nothing has run: what the run before left is as it was.
        if held is not None:
            held.release(settled=False)
        raise
    if held is not None:
        _HELD.append(held)


def _begin(workflow: Any, folder: str, *, slurm: bool, say: Callable[[str], None]) -> None:
    if slurm:
        watchdog.check_settings(workflow.executor_settings, say)
    scheduler = workflow.scheduler
    doubles.settle(
        folder,
        required=slurm,
        say=say,
        # SIGTERM sets this, and the scheduler that reads it has not started yet.
        stop=lambda: getattr(scheduler, "_user_kill", None) is not None,
    )
    orphans = doubles.local_orphans(folder)
    if orphans:
        say(
            f"{doubles.plural(len(orphans), 'command')} of an earlier run still "
            f"{'works' if len(orphans) == 1 else 'work'} here "
            f"(pid {', '.join(map(str, orphans))}): jobs for the same files wait for them and take "
            "over their results."
        )
    if slurm:
        watchdog.start(workflow, say)


def end(*, succeeded: bool) -> None:
    """After the last job: another run may start in this folder."""
    watchdog.stop()
    while _HELD:
        _HELD.pop().release(settled=succeeded)
