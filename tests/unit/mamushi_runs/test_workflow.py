"""How the commands that start the workflow find what to run it with."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from mamushi.cli import main
from mamushi.errors import UserError
from mamushi_runs import workflow
from tests.support.workflow import ROOT


def test_a_cluster_without_its_plug_in_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    assert workflow.profile("slurm") == ROOT / "profiles" / "slurm"
    monkeypatch.setattr(workflow, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"slurm: Snakemake's plug-in .*mamushi-unlearn\[slurm\]"):
        workflow.profile("slurm")
    assert workflow.profile("gpu") == ROOT / "profiles" / "gpu"


def test_the_plug_in_goes_by_that_name() -> None:
    """Else the line above would be said for ever."""
    assert find_spec("snakemake_executor_plugin_slurm") is not None
    assert Path(workflow.profile("demo")).is_dir()


def test_a_cluster_that_is_not_here_is_one_line_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text("grid: {}\n", encoding="utf-8")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["run", "--profile", "slurm"]) == 2
    said = capsys.readouterr().err
    assert "slurm: there is no SLURM on this machine: no sbatch, no squeue" in said
    assert said.count("\n") == 1 and not (tmp_path / ".snakemake").exists()


def test_a_plan_of_nothing_that_was_asked_for_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["plan"]) == 2
    said = capsys.readouterr().err
    assert f"{tmp_path}: no configuration mine.yaml" in said and said.count("\n") == 1
    for words in (["--profile", "slurm"], ["removals"]):
        assert workflow.completed(words, None, None)[-len(words) :] == words
    monkeypatch.chdir(ROOT)
    assert workflow.completed([], None, None)
