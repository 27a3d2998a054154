"""The last line of each command of a run that failed; no second attempt after a user's mistake.

It listens to Snakemake's logger, as a handler of Python's ``logging``, so that ``--quiet`` changes
nothing. It reads the events (``snakemake_interface_logger_plugins``) and the rules' logs.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mamushi_runs.guard import stop

LOGGER = "snakemake.logging"
SHOWN = 5
"""So many failed commands are told of one by one."""
SILENT = "it said nothing"
MISTAKE = re.compile(r"mamushi [\w-]+: error: ")
"""Begin of the last line of a command after a mistake of the user's: see ``mamushi.cli``."""
ENDED = re.compile(r"mamushi [\w-]+: (interrupted|stopped by SIG)")
"""Begin of the last line of a command that was asked to end."""


def last_line(logs: Iterable[str]) -> tuple[str | None, str]:
    """Return the first of these logs that is there, and its last line that has words."""
    log = next((log for log in logs if Path(log).is_file()), None)
    text = Path(log).read_text(encoding="utf-8", errors="replace") if log else ""
    return log, ([line.strip() for line in text.split("\n") if line.strip()] or [SILENT])[-1]


def failure(rule: str, logs: Iterable[str]) -> str:
    """Return a rule's failure by the last line in the first of its logs that is there: that line
    alone after a mistake, after which the same command would fail again."""
    log, last = last_line(logs)
    if MISTAKE.match(last):
        return last
    return f"{rule} failed: {last}" + (f"; see {log}" if log else "")


class Failures(logging.Handler):
    """Keeps the failures of jobs that have not succeeded since."""

    def __init__(self, workflow: Any) -> None:
        super().__init__()
        self.workflow = workflow
        self.of_job: dict[int, str] = {}

    def emit(self, record: logging.LogRecord) -> None:
        event, about = getattr(record, "event", None), record.__dict__
        if event == "job_error":
            self.of_job[about["jobid"]] = failure(about["rule_name"], about["log"])
            self._stop_retries([about])
        elif event == "group_error":
            self._stop_retries(about["job_error_info"])
        elif event == "job_finished":
            self.of_job.pop(about["job_id"], None)

    def _stop_retries(self, failed: list[dict[str, Any]]) -> None:
        """Let Snakemake, which is about to deal with these jobs, try none again after a mistake."""
        if any(MISTAKE.match(failure(each["rule_name"], each["log"])) for each in failed):
            for each in failed:
                self.workflow.get_rule(each["rule_name"]).restart_times = 0


_handlers: list[Failures] = []


def listen(workflow: Any) -> None:
    """Keep the failures of a run from its begin, in its main process."""
    _handlers[:] = [Failures(workflow)]
    logging.getLogger(LOGGER).addHandler(_handlers[0])


def count() -> int:
    """Return how many jobs of the run failed so far, whatever ended them, and not on request."""
    return 0 if stop.asked() else sum(len(handler.of_job) for handler in _handlers)


def summary() -> str | None:
    """Return a line for each command of a run that failed, each cause once; None without any."""
    if not _handlers:
        return None
    handler = _handlers.pop()
    logging.getLogger(LOGGER).removeHandler(handler)
    if stop.asked():
        # A job that was ended on request is no failure.
        return None
    lines = list(dict.fromkeys(handler.of_job.values()))
    more = [f"and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
    return "\n".join(lines[:SHOWN] + more) or None
