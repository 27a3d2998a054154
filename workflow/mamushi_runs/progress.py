"""A run in one line: the stage, how many of all commands are done, and how far its own count is.

A logger plug-in of Snakemake, in place of what Snakemake prints. Warnings and errors are printed as
they are; of a job that fails, what ``failures`` says at the end of the run, and at once its rule.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import re
import shutil
import sys
import textwrap
import threading
import time
from collections.abc import Sequence

from snakemake_interface_logger_plugins.base import LogHandlerBase

from mamushi.io.files import DISK_FULL
from mamushi_runs import failures
from mamushi_runs.guard import stop

CLEAR = "\r\x1b[K"
"""Back to the begin of a terminal's line, which is emptied."""
KNOWN = "At least one job did not complete successfully."
"""An error that says no more than what was said."""
HANDLE_ERROR = logging.Handler.handleError
FULL = "no space left on the disk; free some and run the same command again"
EVERY, SELDOM = 1.0, 30.0
"""Seconds between looks at the logs; and between lines about them where each stays."""
COUNT = re.compile(r"^(.+: \d+/\d+ \w+), (\d+%), \S+ gone, (\S+) left", re.M)
"""A line of ``mamushi.running.progress`` in a log."""
END = 4096
"""Bytes at the end of a log in which its last count is looked for."""


def count(logs: Sequence[str]) -> str | None:
    """Return the last count in the logs of a job, with the time left; None without one."""
    for log in logs:
        with contextlib.suppress(OSError), open(log, "rb") as file:
            file.seek(max(0, file.seek(0, 2) - END))
            if found := COUNT.findall(file.read().decode("utf-8", "replace")):
                what, share, left = found[-1]
                return f"{what}, {share}, {left} left"
    return None


class LogHandler(LogHandlerBase):  # type: ignore[misc]
    """What happens, on standard error: on a terminal one line that changes, else a line for each
    change of job, and seldom one for what a job counts."""

    writes_to_stream = has_filter = has_formatter = True
    writes_to_file = needs_rulegraph = False

    def __post_init__(self) -> None:
        self.jobs: dict[int, tuple[str, Sequence[str]]] = {}
        self.last = self.shown = ""
        self.done = self.total = 0
        self.said = 0.0
        self.ended = threading.Event()
        self.writing = threading.Lock()
        self.looking: threading.Thread | None = None
        self.full = False
        self._answer_for_logs()

    def emit(self, record: logging.LogRecord) -> None:
        event, about = str(getattr(record, "event", "")), record.__dict__
        if event == "run_info" and "stats" in about:
            self.total = about["stats"].get("total", 0)
        elif event == "job_info":
            self.last = about["rule_name"]
            self.jobs[about["jobid"]] = self.last, about.get("log") or ()
            self._show()
            self._watch()
        elif event == "job_finished":
            self.last = self.jobs.pop(about["job_id"], (self.last, ()))[0]
        elif event == "progress":
            # Of all jobs, also those that a checkpoint has added.
            self.done, self.total = about["done"], about["total"]
            self.last = next(iter(self.jobs.values()), (self.last, ()))[0]
            self._show()
        elif event == "job_error":
            self.jobs.pop(about.get("jobid", -1), None)
            # Ctrl-C may reach a job before this process.
            ended = failures.ENDED.match(failures.last_line(about.get("log") or ())[1])
            if not (ended or stop.asked()):
                self._say(f"{about['rule_name']} failed")
        elif record.levelno >= logging.WARNING and event != "group_error":
            # Of a command that failed: all of its words, and that it failed.
            text = record.getMessage().strip()
            if about.get("exception") != "RuleException" and KNOWN not in text:
                self._say(_told(text))

    def _answer_for_logs(self) -> None:
        """Tell once of a full disk, for which each log would show the place in the program."""

        def lost(log: logging.Handler, record: logging.LogRecord) -> None:
            error = sys.exception()
            if isinstance(error, OSError) and error.errno in DISK_FULL:
                self._say(FULL)
            else:
                HANDLE_ERROR(log, record)

        logging.Handler.handleError = lost  # type: ignore

    def close(self) -> None:
        self.ended.set()
        logging.Handler.handleError = HANDLE_ERROR  # type: ignore
        super().close()

    def look(self) -> None:
        """Show how far a running job is by its own count: of several, the first that counts."""
        waits = 0.0 if sys.stderr.isatty() else SELDOM
        if time.monotonic() - self.said < waits:
            return
        for rule, logs in list(self.jobs.values()):
            if found := count(logs):
                self.last = rule
                self._show(found)
                return

    def _watch(self) -> None:
        if self.looking is None:
            self.looking = threading.Thread(target=self._look_on, daemon=True)
            self.looking.start()

    def _look_on(self) -> None:
        while not self.ended.wait(EVERY):
            self.look()

    def _show(self, counted: str = "") -> None:
        with self.writing:
            shown = f"{self.last}  {self.done} of {self.total}"
            shown += f"  {counted}" if counted else ""
            if shown == self.shown:
                return
            terminal = sys.stderr.isatty()
            # The cursor goes back, so that whatever else is printed takes the line's place.
            end = "\r" if terminal and self.done < self.total else "\n"
            line = shown[: shutil.get_terminal_size().columns - 1] if terminal else shown
            print(CLEAR * terminal + line, end=end, file=sys.stderr, flush=True)
            self.shown, self.said = shown, time.monotonic()

    def _say(self, text: str) -> None:
        if FULL in text or os.strerror(errno.ENOSPC) in text:
            if self.full:
                return
            self.full, text = True, FULL
        with self.writing:
            print(f"{CLEAR * sys.stderr.isatty()}{text}", file=sys.stderr, flush=True)
            self.shown = ""


def _told(text: str) -> str:
    """Return what an error says, without the places in the Snakefile at which it was found."""
    asked = r"InputFunctionException [^\n]*\nError:\n  WorkflowError:\n((?:    [^\n]*\n)+)"
    if found := re.match(asked, text):
        # Of a mistake that comes up when a target is asked for.
        return textwrap.dedent(found[1]).strip()
    if "LockException" in text:
        # Of one that `mamushi` did not start: else ``guard.session`` has said so before.
        return (
            "another Snakemake works in this folder, or was killed here: wait for it, or, if none "
            "lives, give snakemake --unlock"
        )
    first, *lines = text.split("\n")
    if not first.startswith("WorkflowError in ") or not lines:
        return text
    return "\n".join(line for line in lines if not line.startswith("  File "))
