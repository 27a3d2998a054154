"""The last line of each command that failed, and no second attempt after a mistake."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mamushi_runs import failures, guard

MISTAKE = "mamushi examples: error: data.csv, row 7: no text; give one"


class Run:
    """A workflow of two rules, and what Snakemake logs of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rules = {name: SimpleNamespace(restart_times=2) for name in ("examples", "retrain")}
        self.ends = failures.Ends(SimpleNamespace(get_rule=self.rules.__getitem__))
        self.logger = logging.getLogger("snakemake.logging")

    def error(self, job: int, rule: str, *lines: str) -> dict[str, Any]:
        log = self.folder / f"{job}.log"
        log.write_text("\n".join([*lines, ""]), encoding="utf-8")
        about = {"jobid": job, "rule_name": rule, "log": [str(log)]}
        self.logger.error("Error in rule", extra={"event": "job_error", **about})
        return about

    def event(self, name: str, **about: Any) -> None:
        self.logger.warning("", extra={"event": name, **about})


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    run = Run(tmp_path)
    yield run
    run.ends.summary()


def before_counts(run: Run) -> list[str]:
    """The lines of the summary before the counts."""
    return run.ends.summary().splitlines()[:-1]


def test_a_mistake_is_told_in_its_own_line_once(run: Run) -> None:
    for job in (1, 2):
        run.error(job, "examples", "reading", MISTAKE)
    assert before_counts(run) == [MISTAKE]


def test_of_other_failures_the_rule_and_the_log_are_told(run: Run) -> None:
    log = run.error(3, "retrain", "Traceback", "  in f", "ValueError: odd", "")["log"][0]
    silent = run.error(4, "retrain")["log"][0]
    assert before_counts(run) == [
        f"retrain failed: ValueError: odd; see {log}",
        f"retrain failed: it said nothing; see {silent}",
    ]


def test_a_job_that_succeeded_in_the_end_has_not_failed(run: Run) -> None:
    """And a job is counted once, however often it was tried."""
    for _ in range(2):
        run.event("job_info", jobid=1)
    run.error(1, "retrain", "stopped")
    run.event("job_finished", job_id=1)
    assert run.ends.summary().startswith("1 jobs done, 0 failed, in ")


def test_a_mistake_is_not_tried_again_and_all_else_is(run: Run) -> None:
    run.error(1, "retrain", "mamushi retrain: failed: out of GPU memory; lower it")
    assert run.rules["retrain"].restart_times == 2
    run.error(2, "examples", MISTAKE)
    assert run.rules["examples"].restart_times == 0


def test_a_pack_with_a_mistake_in_it_is_not_tried_again(run: Run) -> None:
    jobs = [run.error(job, "examples", line) for job, line in enumerate(["fine", MISTAKE])]
    run.event("group_error", job_error_info=[*jobs, {**jobs[0], "rule_name": "retrain"}])
    assert [rule.restart_times for rule in run.rules.values()] == [0, 0]


def test_a_job_that_was_asked_to_end_with_the_run_is_no_failure(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was ended from outside is."""
    run.error(1, "refits", "mamushi refits: stopped by SIGTERM after step 3 of 9")
    monkeypatch.setattr(guard, "_signals", [0.0])
    assert run.ends.summary().startswith("0 jobs done, 0 failed, in ")
