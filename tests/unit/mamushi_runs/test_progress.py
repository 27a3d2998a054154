"""A run in one line, from the events of Snakemake's logger."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from snakemake_interface_logger_plugins.registry import LoggerPluginRegistry

from mamushi_runs import progress


def handler() -> Any:
    made = progress.LogHandler(None, None)
    event(made, "run_info", stats={"embed": 1, "remove": 2, "total": 3})
    return made


def event(handler: Any, name: str, level: int = logging.INFO, text: str = "", **about: Any) -> None:
    record = logging.LogRecord("snakemake", level, "", 0, text, None, None)
    record.__dict__.update(event=name, **about)
    handler.handle(record)


def run(handler: Any) -> None:
    event(handler, "job_info", jobid=1, rule_name="embed")
    event(handler, "job_finished", job_id=1)
    event(handler, "progress", done=1, total=3)
    event(handler, "job_info", jobid=2, rule_name="remove")


def test_snakemake_finds_it_under_its_name() -> None:
    assert LoggerPluginRegistry().get_plugin("mamushi").log_handler is progress.LogHandler


def test_stage_done_and_total(capsys: pytest.CaptureFixture[str]) -> None:
    run(handler())
    assert capsys.readouterr().err.splitlines() == [
        "embed  0 of 3",
        "embed  1 of 3",
        "remove  1 of 3",
    ]


def test_a_terminal_has_one_line_that_changes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    made = handler()
    run(made)
    said = capsys.readouterr().err
    assert said.count("\n") == 0 and said.count(progress.CLEAR) == 3
    event(made, "progress", done=3, total=3)
    assert capsys.readouterr().err.endswith("3 of 3\n")


def test_of_snakemake_s_words_warnings_and_errors_remain(
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = handler()
    event(made, "", text="Building DAG of jobs...")
    event(made, "shellcmd", text="exec python -m mamushi embed")
    event(made, "", logging.WARNING, "a warning")
    event(made, "error", logging.ERROR, "no target 'x'", exception="WorkflowError")
    event(made, "error", logging.ERROR, "CalledProcessError in ...", exception="RuleException")
    event(made, "error", logging.ERROR, f"WorkflowError:\n{progress.KNOWN}", exception="W")
    event(made, "job_error", logging.ERROR, "Error in rule", rule_name="embed")
    event(made, "group_error", logging.ERROR, "Error in group")
    assert capsys.readouterr().err.splitlines() == ["a warning", "no target 'x'", "embed failed"]
