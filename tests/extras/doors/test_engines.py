"""The page of other tools does what it shows."""

import shlex
from pathlib import Path
from typing import Any

import pandas as pd

from mamushi.cli import main
from tests.support.lab import write_lab
from tests.support.scored_cells import rank_cell
from tests.support.workflow import ROOT
from tests.unit.test_docs import blocks


def test_the_page_does_what_it_shows(tmp_path: Path) -> None:
    """Its blocks, one after another, of a table that was ranked."""
    rows = write_lab(tmp_path)
    rank_cell()
    (tmp_path / "new").mkdir()
    frame = pd.read_csv("comments.csv")
    frame.to_json("new/part.jsonl", orient="records", lines=True)
    text = (ROOT / "docs/guide/doors.md").read_text(encoding="utf-8")
    for block in blocks(text, "sh"):
        for line in block.splitlines():
            assert main(shlex.split(line)[1:]) == 0
    names: dict[str, Any] = {}
    (block,) = blocks(text, "python")
    exec(compile(block, "doors.md", "exec"), names)
    assert names["gone"] and {*names["clean"]["id"]} == {name for name, *_ in rows} - names["gone"]
    scores = dict(zip(frame["id"], pd.read_parquet("scores.parquet")["score"], strict=True))
    assert dict(zip(names["scored"]["id"], names["scored"]["score"], strict=True)) == {
        name: scores[name] for name in names["clean"]["id"]
    }
