"""What ``--json`` prints, and nothing else on standard output."""

import json
from pathlib import Path
from typing import Any

import pytest

from mamushi.cli import commands, main
from mamushi.io.files import read_json
from tests.support.removal_files import removal_list


def printed(capsys: pytest.CaptureFixture[str], *words: object) -> Any:
    """What a command prints, read."""
    assert main([*map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_apply_prints_the_receipt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, out = tmp_path / "d.csv", tmp_path / "o.csv"
    data.write_text("id,text,kind\nc1,a,1\nc2,b,0\nc3,a,1\n", encoding="utf-8")
    listed = removal_list(tmp_path / "results", {"c1": ["c3"]}, data=data)
    words = ("apply", listed, "--data", data, "--out", out, "--changed-texts")
    receipt = printed(capsys, *words)
    assert receipt["rows"]["on_the_list"] == 2
    assert receipt == read_json(tmp_path / "o.csv.receipt.json")


@pytest.mark.parametrize("name", commands())
def test_every_command_has_it(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([name, "--help"])
    assert "--json" in capsys.readouterr().out
