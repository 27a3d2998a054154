"""The last line of each command of a run that failed; no second attempt after a user's mistake.

It listens to Snakemake's logger, as a handler of Python's ``logging``, so that ``--quiet`` changes
nothing. It reads the events (``snakemake_interface_logger_plugins``) and the rules' logs.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

LOGGER = "snakemake.logging"
SHOWN = 5
"""So many failed commands are told of one by one."""
MISTAKE = re.compile(r"mamushi [\w-]+: error: ")
"""Begin of the last line of a command after a mistake of the user's: see ``mamushi.cli``."""


class Failure(NamedTuple):
    """A failed job: its rule, its log (empty where it has none), and the last line there."""

    rule: str
    log: str
    line: str

    @property
    def is_mistake(self) -> bool:
        """Whether the same command would fail again."""
        return MISTAKE.match(self.line) is not None

    def __str__(self) -> str:
        if self.is_mistake:
            return self.line
        where = f"; see {self.log}" if self.log else ""
        return f"{self.rule} failed: {self.line or 'it said nothing'}{where}"


def failure(rule: str, logs: Iterable[str]) -> Failure:
    """Return a rule's failure by the first of its logs that is there."""
    for log in logs:
        if Path(log).is_file():
            text = Path(log).read_text(encoding="utf-8", errors="replace")
            lines = [line.strip() for line in text.split("\n") if line.strip()]
            return Failure(rule, log, lines[-1] if lines else "")
    return Failure(rule, "", "")


class Failures(logging.Handler):
    """Keeps the failures of jobs that have not succeeded since."""

    def __init__(self, workflow: Any) -> None:
        super().__init__()
        self.workflow = workflow
        self.of_job: dict[int, Failure] = {}
        self._retries: dict[str, int] = {}

    def emit(self, record: logging.LogRecord) -> None:
        event = str(getattr(record, "event", ""))
        about: Any = record.__dict__
        if event == "job_error":
            failed = self.of_job[about["jobid"]] = failure(about["rule_name"], about["log"])
            self._stop_retries([failed])
        elif event == "group_error":
            jobs = [failure(each["rule_name"], each["log"]) for each in about["job_error_info"]]
            self._stop_retries(jobs)
        elif event == "job_finished":
            self.of_job.pop(about["job_id"], None)
        elif event == "job_started":
            # Snakemake has dealt with the jobs that failed before: others may be tried again.
            while self._retries:
                rule, retries = self._retries.popitem()
                self.workflow.get_rule(rule).restart_times = retries

    def _stop_retries(self, failed: list[Failure]) -> None:
        """Let Snakemake, which is about to deal with these jobs, try none again after a mistake."""
        for each in failed if any(one.is_mistake for one in failed) else ():
            rule = self.workflow.get_rule(each.rule)
            self._retries.setdefault(each.rule, rule.restart_times)
            rule.restart_times = 0


_handlers: list[Failures] = []


def listen(workflow: Any) -> None:
    """Keep the failures of a run from its begin, in its main process."""
    _handlers[:] = [Failures(workflow)]
    logging.getLogger(LOGGER).addHandler(_handlers[0])


def summary() -> str | None:
    """Return a line for each command of a run that failed, each cause once; None without any."""
    if not _handlers:
        return None
    handler = _handlers.pop()
    logging.getLogger(LOGGER).removeHandler(handler)
    lines = list(dict.fromkeys(map(str, handler.of_job.values())))
    more = [f"and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
    return "\n".join(lines[:SHOWN] + more) or None
