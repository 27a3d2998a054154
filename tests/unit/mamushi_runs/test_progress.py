"""A run in one line, from the events of Snakemake's logger."""

from __future__ import annotations

import contextlib
import logging
import re
from pathlib import Path
from typing import Any

import pytest
from snakemake_interface_logger_plugins.registry import LoggerPluginRegistry

from mamushi.running.progress import Progress
from mamushi_runs import progress
from tests.support.processes import until


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


def test_a_mistake_is_told_without_its_places_in_the_snakefile(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = 'WorkflowError in file "/a/common.smk", line 34:\nno target\n  File "/a/Snakefile", in x'
    event(handler(), "error", logging.ERROR, text)
    assert capsys.readouterr().err == "no target\n"


def test_a_mistake_that_a_target_finds_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    said = "datasets.d.sections: has no evaluation section; give one"
    text = "InputFunctionException in rule all in file '/a', line 6:\nError:\n  WorkflowError:\n"
    text += f"    {said}\nWildcards:\n\nTraceback:\n  File '/a', line 65, in <lambda>"
    event(handler(), "error", logging.ERROR, text)
    assert capsys.readouterr().err == f"{said}\n"


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


LOG = """mamushi: 1/5 folds, 4%, 0:00:10 gone, 0:04:00 left, AUC 0.9
refits 2/9, mamushi: 3/5 folds, 18%, 0:01:00 gone, 0:04:33 left, AUC 0.912
a warning of a library
"""


def test_the_line_follows_what_a_job_counts_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "refits.log"
    made = handler()
    monkeypatch.setattr(progress, "EVERY", 3600.0)
    event(made, "job_info", jobid=1, rule_name="remove", log=[str(tmp_path / "none.log")])
    event(made, "job_info", jobid=2, rule_name="refits", log=[str(log)])
    capsys.readouterr()
    # Where each line stays, there are few.
    log.write_text(LOG, encoding="utf-8")
    made.look()
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(progress, "SELDOM", 0.0)
    made.look()
    followed = "refits  0 of 3  refits 2/9, mamushi: 3/5 folds, 18%, 0:04:33 left\n"
    assert capsys.readouterr().err == followed
    made.look()
    assert capsys.readouterr().err == ""
    event(made, "job_finished", job_id=2)
    log.write_text(LOG.replace("18%", "20%"), encoding="utf-8")
    made.look()
    assert capsys.readouterr().err == ""
    made.close()


def test_a_terminal_s_line_follows_at_once_and_is_no_wider(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr(progress, "EVERY", 0.01)
    monkeypatch.setenv("COLUMNS", "40")
    log = tmp_path / "refits.log"
    log.write_text("x" * progress.END + "\n" + LOG, encoding="utf-8")
    made = handler()
    event(made, "job_info", jobid=2, rule_name="refits", log=[str(log)])
    until(lambda: "3/5" in made.shown)
    made.close()
    assert capsys.readouterr().err.endswith("\r\x1b[Krefits  0 of 3  refits 2/9, mamushi: 3/\r")


def test_a_count_within_another_one_is_of_the_whole(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(4, "refits", "refit", every=3600.0) as whole:
        whole.began -= 90.0
        whole.advance()
        assert capsys.readouterr().err == ""
        with Progress(5, "mamushi", "fold", every=0.0) as inner:
            inner.advance()
            inner.advance(note="AUC 0.9")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("refits 2/4, mamushi: 1/5 folds, 30%, 0:01:30 gone, 0:03:3")
    assert re.fullmatch(
        r"refits 2/4, mamushi: 2/5 folds, 35%, 0:01:30 gone, 0:02:4\d left, AUC 0.9", lines[1]
    )
    # One that nobody is within says what it did.
    with Progress(2, "gold", "step", every=0.0, start=1) as alone:
        alone.advance()
    assert capsys.readouterr().err == "gold: 2/2 steps, 100%, 0:00:00 gone, 0:00:00 left\n"


def test_a_full_disk_is_told_once_and_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Each log that it loses would show a traceback, and Snakemake says it in its own words."""
    made = handler()
    with open("/dev/full", "w", encoding="utf-8") as full:
        log = logging.StreamHandler(full)
        for _ in range(2):
            log.handle(logging.LogRecord("a", logging.INFO, "", 0, "x", None, None))
        with contextlib.suppress(OSError):
            full.close()
    event(made, "error", logging.ERROR, "Error recording ([Errno 28] No space left on device)")
    assert capsys.readouterr().err == f"{progress.FULL}\n"
    made.close()
    assert logging.Handler.handleError is progress.HANDLE_ERROR


def test_a_lock_of_another_snakemake_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    text = "LockException:\nError: Directory cannot be locked. Please make sure that no other ..."
    event(handler(), "error", logging.ERROR, text)
    said = capsys.readouterr().err
    assert said.startswith("another Snakemake works in this folder") and said.count("\n") == 1
