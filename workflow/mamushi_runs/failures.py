"""Which commands of a run have failed, and why: the last line of each, in place of all that
Snakemake says about a failed job; and no second attempt after a mistake of the user's.

It listens to Snakemake's logger, as a handler of Python's ``logging``, so that ``--quiet`` changes
nothing. It has what the events say (``snakemake_interface_logger_plugins``) and the rules' logs.
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
"""How the last line of a command begins after a mistake of the user's: see ``mamushi.cli``."""


class Failure(NamedTuple):
    """A failed job: its rule, its log (empty where it has none), and the last line there."""

    rule: str
    log: str
    line: str

    @property
    def mistake(self) -> bool:
        """Whether the same command would fail again."""
        return MISTAKE.match(self.line) is not None

    def __str__(self) -> str:
        if self.mistake:
            return self.line
        where = f"; see {self.log}" if self.log else ""
        return f"{self.rule} failed: {self.line or 'it said nothing'}{where}"


def failure(rule: str, logs: Iterable[str]) -> Failure:
    """What the first of these logs that is there ends with."""
    for log in logs:
        try:
            lines = Path(log).read_text(encoding="utf-8", errors="replace").split("\n")
        except OSError:
            continue
        said = [line.strip() for line in lines if line.strip()]
        return Failure(rule, log, said[-1] if said else "")
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
        told: Any = record.__dict__
        if event == "job_error":
            failed = self.of_job[told["jobid"]] = failure(told["rule_name"], told["log"])
            if failed.mistake:
                self._give_up([failed.rule])
        elif event == "group_error":
            jobs = [failure(each["rule_name"], each["log"]) for each in told["job_error_info"]]
            if any(each.mistake for each in jobs):
                self._give_up([each.rule for each in jobs])
        elif event == "job_finished":
            self.of_job.pop(told["job_id"], None)
        elif event == "job_started":
            # Snakemake has dealt with the jobs that failed before: others may be tried again.
            while self._retries:
                rule, retries = self._retries.popitem()
                self.workflow.get_rule(rule).restart_times = retries

    def _give_up(self, rules: Iterable[str]) -> None:
        """Let Snakemake, which is about to deal with jobs of these rules, try none again."""
        for name in rules:
            rule = self.workflow.get_rule(name)
            self._retries.setdefault(name, rule.restart_times)
            rule.restart_times = 0


_kept: list[Failures] = []


def listen(workflow: Any) -> None:
    """From the begin of a run, in its main process."""
    _kept[:] = [Failures(workflow)]
    logging.getLogger(LOGGER).addHandler(_kept[0])


def told() -> str | None:
    """At the end of a run: a line for each command that failed, each cause once; else None."""
    if not _kept:
        return None
    handler = _kept.pop()
    logging.getLogger(LOGGER).removeHandler(handler)
    lines = list(dict.fromkeys(map(str, handler.of_job.values())))
    more = [f"and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
    return "\n".join(lines[:SHOWN] + more) or None
