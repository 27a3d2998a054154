"""How the commands that start the workflow find what to run it with."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from mamushi.cli import main
from mamushi_curate import one_process
from mamushi_curate.commands import rank
from mamushi_runs.commands import _run


def test_the_plug_in_goes_by_that_name() -> None:
    """Else the line above would be said for ever."""
    assert find_spec("snakemake_executor_plugin_slurm") is not None
    assert Path(_run.profile("demo")).is_dir()


def test_nothing_that_was_not_asked_for_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The paper's grid."""
    monkeypatch.chdir(tmp_path)
    for command in ("plan", "run"):
        assert main([command, "removals", "--profile", "slurm"]) == 2
        said = capsys.readouterr().err
        assert f"{tmp_path}: no configuration mine.yaml" in said and said.count("\n") == 1


MINE = """grid: {datasets: [d], models: [m], seeds: [0], selectors: [mamushi_lr]}
datasets: {d: {kind: table, path: there/d.csv}}
"""


def test_a_ranking_that_goes_on_says_of_what(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The configuration may have come from another folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text(MINE, encoding="utf-8")
    cell = {"datasets": ["d"], "models": ["m"], "seeds": [0]}
    monkeypatch.setattr(_run, "check", lambda *_: {"grid": cell})
    monkeypatch.setattr(one_process, "suits", lambda *_: False)
    monkeypatch.setattr(rank, "_rank_by_workflow", lambda *_: 1)
    assert main(["rank", "--quick"]) == 1
    assert capsys.readouterr().out == "mine.yaml: ranks there/d.csv\n"
