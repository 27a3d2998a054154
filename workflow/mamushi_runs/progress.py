"""A run in one line: the stage, how many of all commands are done, the time that is left.

A logger plug-in of Snakemake, in place of what Snakemake prints. Warnings and errors are printed as
they are; of a job that fails, what ``failures`` says at the end of the run, and at once its rule.
"""

from __future__ import annotations

import logging
import sys
import time
from collections import Counter

from snakemake_interface_logger_plugins.base import LogHandlerBase

from mamushi_runs.forecast import forecast
from mamushi_runs.forecast.forecast import clock

CLEAR = "\r\x1b[K"
"""Back to the begin of a terminal's line, which is emptied."""
TRUST = 0.05
"""The share of a run after which its pace says how long the rest takes."""
KNOWN = "At least one job did not complete successfully."
"""An error that says no more than what was said."""


class LogHandler(LogHandlerBase):  # type: ignore[misc]
    """What happens, on standard error: on a terminal one line that changes, else a line for each
    change."""

    def __post_init__(self) -> None:
        self.rules: dict[int, str] = {}
        self.left: Counter[str] = Counter()
        self.last = ""
        self.done = self.total = 0
        self.began = time.monotonic()
        self.shown = ""

    writes_to_stream = True
    writes_to_file = False
    has_filter = True
    has_formatter = True
    needs_rulegraph = False

    def emit(self, record: logging.LogRecord) -> None:
        event, about = str(getattr(record, "event", "")), record.__dict__
        if event == "run_info" and "stats" in about:
            self.left = Counter({rule: n for rule, n in about["stats"].items() if rule != "total"})
            self.total = sum(self.left.values())
        elif event == "job_info":
            self.rules[about["jobid"]] = about["rule_name"]
            self._show(about["rule_name"])
        elif event == "job_finished":
            self.last = self.rules.pop(about["job_id"], self.last)
            self.left[self.last] -= 1
        elif event == "progress":
            # Of all jobs, also those that a checkpoint has added.
            self.done, self.total = about["done"], about["total"]
            self._show(next(iter(self.rules.values()), self.last))
        elif event == "job_error":
            self._say(f"{about['rule_name']} failed")
        elif record.levelno >= logging.WARNING and event != "group_error":
            # Of a command that failed: all of its words, and that it failed.
            of_job = about.get("exception") == "RuleException"
            text = record.getMessage().strip()
            if not of_job and KNOWN not in text:
                self._say(text)

    def _show(self, rule: str) -> None:
        shown = f"{rule}  {self.done} of {self.total}{self._time_left()}"
        if shown == self.shown:
            return
        self.shown, terminal = shown, sys.stderr.isatty()
        # The cursor goes back, so that whatever else is printed takes the line's place.
        end = "\r" if terminal and self.done < self.total else "\n"
        print(CLEAR * terminal + shown, end=end, file=sys.stderr, flush=True)

    def _time_left(self) -> str:
        """Return the time left by how fast the run has gone through its forecast so far."""
        rules = (forecast.current() or {"rules": {}})["rules"]
        total = sum(entry["wall_seconds"] for entry in rules.values())
        known = (rule for rule in self.left if rule in rules)
        each = (self.left[r] * rules[r]["wall_seconds"] / rules[r]["jobs"] for r in known)
        done = 1 - sum(each) / total if total else 0.0
        if not TRUST < done < 1:
            return ""
        return f", about {clock((time.monotonic() - self.began) * (1 - done) / done)} left"

    def _say(self, text: str) -> None:
        clear = CLEAR if sys.stderr.isatty() else ""
        print(f"{clear}{text}", file=sys.stderr, flush=True)
        self.shown = ""
