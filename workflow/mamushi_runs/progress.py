"""A run in one line: the stage, and how many of all commands are done.

A logger plug-in of Snakemake, in place of what Snakemake prints. Warnings and errors are printed as
they are; of a job that fails, what ``failures`` says at the end of the run, and at once its rule.
"""

from __future__ import annotations

import logging
import sys

from snakemake_interface_logger_plugins.base import LogHandlerBase

CLEAR = "\r\x1b[K"
"""Back to the begin of a terminal's line, which is emptied."""
KNOWN = "At least one job did not complete successfully."
"""An error that says no more than what was said."""


class LogHandler(LogHandlerBase):  # type: ignore[misc]
    """What happens, on standard error: on a terminal one line that changes, else a line for each
    change."""

    writes_to_stream = has_filter = has_formatter = True
    writes_to_file = needs_rulegraph = False

    def __post_init__(self) -> None:
        self.rules: dict[int, str] = {}
        self.last = self.shown = ""
        self.done = self.total = 0

    def emit(self, record: logging.LogRecord) -> None:
        event, about = str(getattr(record, "event", "")), record.__dict__
        if event == "run_info" and "stats" in about:
            self.total = about["stats"].get("total", 0)
        elif event == "job_info":
            self.last = self.rules[about["jobid"]] = about["rule_name"]
            self._show()
        elif event == "job_finished":
            self.last = self.rules.pop(about["job_id"], self.last)
        elif event == "progress":
            # Of all jobs, also those that a checkpoint has added.
            self.done, self.total = about["done"], about["total"]
            self.last = next(iter(self.rules.values()), self.last)
            self._show()
        elif event == "job_error":
            self._say(f"{about['rule_name']} failed")
        elif record.levelno >= logging.WARNING and event != "group_error":
            # Of a command that failed: all of its words, and that it failed.
            text = record.getMessage().strip()
            if about.get("exception") != "RuleException" and KNOWN not in text:
                self._say(text)

    def _show(self) -> None:
        shown = f"{self.last}  {self.done} of {self.total}"
        if shown != self.shown:
            terminal = sys.stderr.isatty()
            # The cursor goes back, so that whatever else is printed takes the line's place.
            end = "\r" if terminal and self.done < self.total else "\n"
            print(CLEAR * terminal + shown, end=end, file=sys.stderr, flush=True)
            self.shown = shown

    def _say(self, text: str) -> None:
        print(f"{CLEAR * sys.stderr.isatty()}{text}", file=sys.stderr, flush=True)
        self.shown = ""
