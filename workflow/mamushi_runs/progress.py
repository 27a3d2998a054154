"""A run in one line: the stage, how many of all jobs are done, and how far its own count is.

A logger plug-in of Snakemake that shows ``tqdm`` in place of what Snakemake prints. Warnings and
errors are printed as they are; of a job that fails, at once its rule.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import re
import sys
import textwrap
import threading
from collections.abc import Sequence

from snakemake_interface_logger_plugins.base import LogHandlerBase

from mamushi_runs import guard

REPEATED = "At least one job did not complete successfully."
"""An error that says no more than what was said."""
DISK_FULL = "no space left on the disk; free some and run the same command again"
COUNT = re.compile(r"^(.+: \d+/\d+ \w+, \d+%), \S+ gone, (\S+ left)", re.M)
"""A line of ``mamushi.running.progress`` in a log."""
LOG_END = 4096
"""Bytes at the end of a log in which its last count is looked for."""


def last_count(logs: Sequence[str]) -> str:
    """Return the last count in the logs of a job, with the time left; empty without one."""
    for log in logs:
        with contextlib.suppress(OSError), open(log, "rb") as file:
            file.seek(max(0, file.seek(0, 2) - LOG_END))
            if counts := COUNT.findall(file.read().decode("utf-8", "replace")):
                return ", ".join(counts[-1])
    return ""


class LogHandler(LogHandlerBase):  # type: ignore[misc]
    """What happens, on standard error: on a terminal a bar, else a line for each job that ends."""

    writes_to_stream = has_filter = has_formatter = True
    writes_to_file = needs_rulegraph = False

    def __post_init__(self) -> None:
        from tqdm import tqdm  # type: ignore[import-untyped]

        self.jobs: dict[int, tuple[str, Sequence[str]]] = {}
        self.finished = ""
        self.printed: set[str] = set()
        self.ended = threading.Event()
        form = "{desc}  {n} of {total}  {elapsed}{postfix}"
        self.bar = tqdm(total=0, disable=None, bar_format=form, dynamic_ncols=True)
        if not self.bar.disable:
            threading.Thread(target=self._follow, daemon=True).start()
        # Each log line that a full disk loses would show a traceback.
        logging.raiseExceptions = False

    def emit(self, record: logging.LogRecord) -> None:
        event, fields = str(getattr(record, "event", "")), record.__dict__
        if event == "job_info":
            self.jobs[fields["jobid"]] = fields["rule_name"], fields.get("log") or ()
        elif event == "job_finished":
            self.finished, _ = self.jobs.pop(fields["job_id"], (self.finished, ()))
        elif event == "progress":
            self.bar.total = fields["total"]
            self.bar.update(fields["done"] - self.bar.n)
            if self.bar.disable:
                self.bar.write(f"{self.finished}  {fields['done']} of {self.bar.total}", sys.stderr)
        elif event == "job_error":
            self.jobs.pop(fields.get("jobid", -1), None)
            if not guard.asked_to_end():
                self.bar.write(f"{fields['rule_name']} failed", sys.stderr)
        elif record.levelno >= logging.WARNING and event != "group_error":
            text = shortened(record.getMessage().strip())
            # Of a command that failed: all of its words, and that it failed.
            is_new = fields.get("exception") != "RuleException" and REPEATED not in text
            if is_new and text not in self.printed:
                self.printed.add(text)
                self.bar.write(text, sys.stderr)

    def close(self) -> None:
        self.ended.set()
        self.bar.close()
        super().close()

    def _follow(self) -> None:
        """Show each second which rules run, and how far the first that counts is."""
        while not self.ended.wait(1.0):
            jobs = list(self.jobs.values())
            counts = filter(None, (last_count(logs) for _, logs in jobs))
            self.bar.set_description_str(next((rule for rule, _ in jobs), ""), refresh=False)
            self.bar.set_postfix_str(next(counts, ""), refresh=True)


def shortened(text: str) -> str:
    """Return what an error says, without the places in the Snakefile where it came up."""
    if os.strerror(errno.ENOSPC) in text:
        return DISK_FULL
    nested = r"InputFunctionException [^\n]*\nError:\n  WorkflowError:\n((?:    [^\n]*\n)+)"
    if match := re.match(nested, text):
        # A mistake that comes up when a target is asked for.
        return textwrap.dedent(match[1]).strip()
    first, *lines = text.split("\n")
    if not first.startswith("WorkflowError in ") or not lines:
        return text
    return "\n".join(line for line in lines if not line.startswith("  File "))
