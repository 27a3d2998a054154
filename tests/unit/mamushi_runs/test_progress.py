"""A run in one line, from the events of Snakemake's logger."""

from __future__ import annotations

import io
import logging
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from snakemake_interface_logger_plugins.registry import LoggerPluginRegistry

from mamushi.running.progress import Progress
from mamushi_runs import progress


@pytest.fixture
def handler() -> Any:
    made = progress.LogHandler(None, None)
    yield made
    made.close()
    logging.raiseExceptions = True


def event(handler: Any, name: str, level: int = logging.INFO, text: str = "", **more: Any) -> None:
    record = logging.LogRecord("snakemake", level, "", 0, text, None, None)
    record.__dict__.update(event=name, **more)
    handler.handle(record)


def run(handler: Any) -> None:
    event(handler, "run_info", stats={"embed": 1, "remove": 2, "total": 3})
    event(handler, "job_info", jobid=1, rule_name="embed")
    event(handler, "job_info", jobid=2, rule_name="remove")
    event(handler, "job_finished", job_id=1)
    event(handler, "progress", done=1, total=3)


def test_snakemake_finds_it_under_its_name() -> None:
    assert LoggerPluginRegistry().get_plugin("mamushi").log_handler is progress.LogHandler


def test_what_runs_done_and_total(handler: Any, capsys: pytest.CaptureFixture[str]) -> None:
    run(handler)
    assert capsys.readouterr().err.splitlines() == ["embed  1 of 3"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_has_one_line_that_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    handler = progress.LogHandler(None, None)
    run(handler)
    event(handler, "job_error", logging.ERROR, rule_name="remove")
    handler.close()
    said = terminal.getvalue()
    assert "1 of 3" in said and "\rremove failed\n" in said.replace(" ", " ").replace("\r\r", "\r")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            'WorkflowError in file "/a/b.smk", line 34:\nno target\n  File "/a/Snakefile", in x',
            "no target",
        ),
        (
            "InputFunctionException in rule all in file '/a', line 6:\nError:\n  WorkflowError:\n"
            "    has no evaluation section; give one\nWildcards:\n\nTraceback:\n  File '/a'",
            "has no evaluation section; give one",
        ),
        ("Error recording ([Errno 28] No space left on device)", progress.DISK_FULL),
    ],
)
def test_a_mistake_is_one_line(
    handler: Any, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    event(handler, "error", logging.ERROR, text)
    assert capsys.readouterr().err == f"{said}\n"


def test_of_snakemake_s_words_warnings_and_errors_remain(
    handler: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    event(handler, "", text="Building DAG of jobs...")
    event(handler, "shellcmd", text="exec python -m mamushi embed")
    event(handler, "", logging.WARNING, "a warning")
    event(handler, "error", logging.ERROR, "CalledProcessError in ...", exception="RuleException")
    event(handler, "error", logging.ERROR, f"WorkflowError:\n{progress.REPEATED}", exception="W")
    event(handler, "job_error", logging.ERROR, "Error in rule", rule_name="embed")
    event(handler, "group_error", logging.ERROR, "Error in group")
    assert capsys.readouterr().err.splitlines() == ["a warning", "embed failed"]


def test_the_last_count_of_a_log_is_shown(tmp_path: Path) -> None:
    log = tmp_path / "refits.log"
    log.write_text(
        "x" * progress.LOG_END + "\n"
        "mamushi: 1/5 folds, 4%, 0:00:10 gone, 0:04:00 left, AUC 0.9\n"
        "refits 2/9, mamushi: 3/5 folds, 18%, 0:01:00 gone, 0:04:33 left, AUC 0.912\n"
        "a warning of a library\n",
        encoding="utf-8",
    )
    counted = progress.last_count([str(tmp_path / "none.log"), str(log)])
    assert counted == "refits 2/9, mamushi: 3/5 folds, 18%, 0:04:33 left"


def test_a_count_within_another_one_is_of_the_whole(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(4, "refits", "refit", every=3600.0) as whole:
        whole.began -= 90.0
        whole.advance()
        assert capsys.readouterr().err == ""
        with Progress(5, "mamushi", "fold", every=0.0) as inner:
            inner.advance(note="AUC 0.9")
    (line,) = capsys.readouterr().err.splitlines()
    said = r"refits 2/4, mamushi: 1/5 folds, 30%, 0:01:3\d gone, 0:03:3\d left, AUC 0.9"
    assert re.fullmatch(said, line)


def test_whoever_looks_on_sees_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stderr", screen)
    with Progress(2, "stack", "fold") as count:
        count.advance(note="AUC 0.9")
        count.advance(note="AUC 0.8")
    seen = screen.getvalue()
    assert "stack:   0%" in seen and "0/2" in seen and "gone" not in seen
