"""What ``--json`` prints, and nothing else on standard output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from mamushi.cli import commands, main
from mamushi.io.files import read_json
from mamushi_runs.commands import _run
from tests.support.ranked_files import write_ranked
from tests.support.removal_files import removal_list


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


@pytest.mark.parametrize("name", commands())
def test_every_command_has_it(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([name, "--help"])
    assert "--json" in capsys.readouterr().out


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
