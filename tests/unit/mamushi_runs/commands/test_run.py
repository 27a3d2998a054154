"""How the commands that start the workflow find what to run it with."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from mamushi.cli import main
from mamushi.errors import UserError
from mamushi_runs.commands import _run, unlearn
from tests.support.workflow import ROOT


def test_the_plug_in_goes_by_that_name() -> None:
    """Else the line above would be said for ever."""
    assert find_spec("snakemake_executor_plugin_slurm") is not None
    assert Path(_run.profile("demo")).is_dir()


def test_a_plan_of_nothing_that_was_asked_for_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["plan"]) == 2
    said = capsys.readouterr().err
    assert f"{tmp_path}: no configuration mine.yaml" in said and said.count("\n") == 1
    for words in (["--profile", "slurm"], ["removals"]):
        assert _run.completed(words, None, None)[-len(words) :] == words
    monkeypatch.chdir(ROOT)
    assert _run.completed([], None, None)


MINE = """grid: {datasets: [d], models: [m], seeds: [0], selectors: [mamushi_lr]}
datasets: {d: {kind: table, path: there/d.csv}}
"""


def test_a_file_that_unlearn_did_not_write_stays(tmp_path: Path) -> None:
    section = {"datasets": ["d"], "lists": {"one": "one.txt"}}
    added = tmp_path / "mine.unlearning.yaml"
    unlearn._check_added(added, section)
    added.write_text(yaml.safe_dump({"unlearning": section | {"lists": {}}}), encoding="utf-8")
    unlearn._check_added(added, section)
    for theirs in ({"unlearning": section, "grid": {}}, {"unlearning": {"target": 0.5}}):
        added.write_text(yaml.safe_dump(theirs), encoding="utf-8")
        with pytest.raises(UserError, match=r"unlearning.yaml: is not of mamushi unlearn"):
            unlearn._check_added(added, section)


def test_a_ranking_that_goes_on_says_of_what(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The configuration may have come from another folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text(MINE, encoding="utf-8")
    monkeypatch.setattr(_run, "check", lambda *_: None)
    monkeypatch.setattr(_run, "run", lambda *_: 1)
    assert main(["rank", "--quick"]) == 1
    assert capsys.readouterr().out == "mine.yaml: ranks there/d.csv\n"
