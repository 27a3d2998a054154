"""What ``--json`` prints, and nothing else on standard output."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from mamushi.cli import commands, main
from mamushi.io.files import read_json
from mamushi_runs.commands import _run
from tests.support.ranked_files import frontier, write_frontiers, write_ranked
from tests.support.removal_files import removal_list
from tests.support.workflow import ROOT, environment


def printed(capsys: pytest.CaptureFixture[str], *words: object) -> Any:
    """What a command prints, read."""
    assert main([*map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_show_prints_the_manifests_with_their_lists(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_ranked(tmp_path / "results", selectors=("lr_cos", "mamushi"))
    shown = printed(capsys, "show", tmp_path)
    assert {manifest["selector"] for manifest in shown} == {"lr_cos", "mamushi"}
    for manifest in shown:
        path = Path(manifest.pop("path"))
        assert path.is_file()
        assert manifest.items() <= read_json(path.with_suffix(".json")).items()


def test_apply_prints_the_receipt_also_of_what_is_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, out = tmp_path / "d.csv", tmp_path / "o.csv"
    data.write_text("id,text,kind\nc1,a,1\nc2,b,0\nc3,a,1\n", encoding="utf-8")
    listed = removal_list(tmp_path / "results", {"c1": ["c3"]}, data=data)
    words = ("apply", listed, "--data", data, "--out", out, "--changed-texts")
    receipt = printed(capsys, *words)
    assert receipt["rows"]["on_the_list"] == 2
    assert receipt == printed(capsys, *words)
    assert receipt == read_json(tmp_path / "o.csv.receipt.json")


def test_advise_prints_a_row_for_each_selector(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_frontiers(tmp_path / "results", frontier("mamushi", 0.5))
    (row,) = printed(capsys, "advise", "--root", tmp_path / "results", "--removal", 0.5)
    assert row["selector"] == "mamushi" and row["target"] == "removal" and row["value"] == 0.5


@pytest.mark.parametrize("name", commands())
def test_every_command_has_it(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([name, "--help"])
    assert "--json" in capsys.readouterr().out


def test_init_and_export_print_what_they_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"words of text {i}, {i % 2}\n" for i in range(80))
    Path("d.csv").write_text(f"text,bad\n{rows}", encoding="utf-8")
    done = printed(capsys, "init", "d.csv", "--text", "text", "--forget", "bad == 1")
    assert done["next"] == "mamushi run removals" and done["configuration"] == "mine.yaml"
    assert done["content"] == yaml.safe_load(Path("mine.yaml").read_text("utf-8"))
    Path("ids.csv").write_text("id,text\nc1,a\nc2,b\nc3,a\n", encoding="utf-8")
    listed = removal_list(tmp_path / "results", {"c1": ["c3"]}, data=tmp_path / "ids.csv")
    done = printed(capsys, "export", listed, "--to", "ids", "--out", "ids.txt")
    assert done == {"written": "ids.txt"} and Path("ids.txt").is_file()


def test_commands_that_run_print_what_they_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ids").write_text("a\n", encoding="utf-8")
    cell = {"datasets": ["newsgroups"], "models": ["gemma-2-2b"], "seeds": [0]}
    mine = {"extends": "paper", "grid": {**cell, "selectors": ["lr_cos"]}}
    Path("mine.yaml").write_text(yaml.safe_dump(mine), encoding="utf-8")
    write_ranked(tmp_path / "results", selectors=("lr_cos",))

    def wait(line: object) -> tuple[int, int]:
        print("what Snakemake says")
        return 0, 0

    monkeypatch.setattr(_run, "_wait", wait)
    assert {manifest["selector"] for manifest in printed(capsys, "rank")} == {"lr_cos"}
    assert printed(capsys, "rank", "--dry-run") == []
    assert printed(capsys, "run", "evidence") == {"targets": ["evidence"], "made": True}
    assert printed(capsys, "run", "-n") == {"targets": ["all"], "made": False}
    assert printed(capsys, "report") == {"report": "results/report.html"}
    (model,) = printed(capsys, "unlearn", "ids")
    assert model["dataset"] == "newsgroups" and model["export"].startswith("mamushi export")


def test_processes_of_a_run_print_elsewhere_too(tmp_path: Path) -> None:
    shutil.copy(ROOT / "profiles/demo/science.yaml", tmp_path / "mine.yaml")
    words = [sys.executable, "-m", "mamushi", "run", "removals", "-n", "--json"]
    env = environment(PYTHONPATH=str(ROOT / "workflow"))
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {"targets": ["removals"], "made": False}
    assert "removals" in done.stderr
