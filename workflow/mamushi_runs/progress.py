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

from mamushi_runs.forecast import account
from mamushi_runs.forecast.words import clock

CLEAR = "\r\x1b[K"
"""Back to the begin of a terminal's line, which is emptied."""
TRUST = 0.05
"""The share of a run after which its own pace counts, and not the forecast's."""
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
        event, told = str(getattr(record, "event", "")), record.__dict__
        if event == "run_info" and "stats" in told:
            self.left = Counter({rule: n for rule, n in told["stats"].items() if rule != "total"})
            self.total = sum(self.left.values())
        elif event == "job_info":
            self.rules[told["jobid"]] = told["rule_name"]
            self._show(told["rule_name"])
        elif event == "job_finished":
            self.last = self.rules.pop(told["job_id"], self.last)
            self.left[self.last] -= 1
        elif event == "progress":
            # Of all jobs, also those that a checkpoint has added.
            self.done, self.total = told["done"], told["total"]
            self._show(next(iter(self.rules.values()), self.last))
        elif event == "job_error":
            self._say(f"{told['rule_name']} failed")
        elif record.levelno >= logging.WARNING and event != "group_error":
            # Of a command that failed: all of its words, and that it failed.
            of_job = told.get("exception") == "RuleException"
            text = record.getMessage().strip()
            if not of_job and KNOWN not in text:
                self._say(text)

    def _show(self, rule: str) -> None:
        shown = f"{rule}  {self.done} of {self.total}{self._time_left()}"
        if shown == self.shown:
            return
        self.shown = shown
        if sys.stderr.isatty():
            # The cursor goes back, so that whatever else is printed takes the line's place.
            print(
                f"{CLEAR}{shown}",
                end="\r" if self.done < self.total else "\n",
                file=sys.stderr,
                flush=True,
            )
        else:
            print(shown, file=sys.stderr, flush=True)

    def _time_left(self) -> str:
        """By the forecast, and by how fast the run has gone through it."""
        made = account.current()
        if made is None:
            return ""
        each = {rule: told["wall_seconds"] / told["jobs"] for rule, told in made["rules"].items()}
        whole = sum(told["wall_seconds"] for told in made["rules"].values())
        rest = sum(number * each.get(rule, 0.0) for rule, number in self.left.items())
        if not whole or not rest:
            return ""
        done = max(1 - rest / whole, 0.0)
        if done > TRUST:
            seconds = (time.monotonic() - self.began) * (1 - done) / done
        else:
            seconds = made["wall_seconds"] * (1 - done)
        return f", about {clock(max(seconds, 1.0))} left"

    def _say(self, text: str) -> None:
        clear = CLEAR if sys.stderr.isatty() else ""
        print(f"{clear}{text}", file=sys.stderr, flush=True)
        self.shown = ""
