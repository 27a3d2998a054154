"""How the jobs of a run ended: a count, the last line of each command that failed, and no second
attempt after a user's mistake.

It listens to Snakemake's logger, as a handler of Python's ``logging``, so that ``--quiet`` changes
nothing. It reads the events (``snakemake_interface_logger_plugins``) and the rules' logs.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mamushi_runs import guard

SHOWN = 5
"""So many failed commands are told of one by one."""
MISTAKE = re.compile(r"mamushi [\w-]+: error: ")
"""Begin of the last line of a command after a mistake of the user's: see ``mamushi.cli``."""


def describe(rule: str, logs: Iterable[str]) -> str:
    """Return a rule's failure by the last line in the first of its logs that is there: that line
    alone after a mistake, after which the same command would fail again."""
    log = next((log for log in logs if Path(log).is_file()), None)
    text = Path(log).read_text(encoding="utf-8", errors="replace").strip() if log else ""
    last = text.rpartition("\n")[2].strip() or "it said nothing"
    if MISTAKE.match(last):
        return last
    return f"{rule} failed: {last}" + (f"; see {log}" if log else "")


class Ends(logging.Handler):
    """Counts the jobs of a run that are done, and keeps the failures of those that have not
    succeeded since."""

    def __init__(self, workflow: Any) -> None:
        super().__init__()
        self.workflow, self.began = workflow, time.monotonic()
        self.started: set[int] = set()
        self.done: set[int] = set()
        self.failures: dict[int, str] = {}
        logging.getLogger("snakemake.logging").addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        event, fields = getattr(record, "event", None), record.__dict__
        if event == "job_info":
            self.started.add(fields["jobid"])
        elif event == "job_error":
            self.failures[fields["jobid"]] = describe(fields["rule_name"], fields["log"])
            self._stop_retries([fields])
        elif event == "group_error":
            self._stop_retries(fields["job_error_info"])
        elif event == "job_finished":
            self.failures.pop(fields["job_id"], None)
            self.done.add(fields["job_id"])

    def _stop_retries(self, jobs: list[dict[str, Any]]) -> None:
        """Let Snakemake, which is about to deal with these jobs, try none again after a mistake."""
        if any(MISTAKE.match(describe(job["rule_name"], job["log"])) for job in jobs):
            for job in jobs:
                self.workflow.get_rule(job["rule_name"]).restart_times = 0

    def summary(self) -> str:
        """Return the lines with which a run ends, after which this listens no more: a line for each
        command that failed, each cause once, and the counts. A job that was asked to end with the
        run is no failure."""
        logging.getLogger("snakemake.logging").removeHandler(self)
        failures = {} if guard.asked_to_end() else self.failures
        lines = list(dict.fromkeys(failures.values()))
        rest = [f"and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
        seconds = time.monotonic() - self.began
        counts = f"{len(self.done & self.started)} jobs done, {len(failures)} failed"
        return "\n".join([*lines[:SHOWN], *rest, f"{counts}, in {clock(seconds)}."])


def clock(seconds: float) -> str:
    """Return a time in the unit that suits it: ``-``, ``8.0 s``, ``12 min``, ``1,530 h``."""
    if not seconds:
        return "-"
    unit, size = ("s", 1) if seconds < 99.5 else ("min", 60) if seconds < 5970 else ("h", 3600)
    return f"{seconds / size:,.{0 if seconds / size >= 9.95 else 1}f} {unit}"
