"""The way in: what `mamushi init` sees in a table and a model, and writes."""

import csv
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from mamushi.config.complete import complete
from mamushi.config.sources import files
from mamushi.errors import UserError
from mamushi.lm import tiny
from mamushi.registry import plugin
from tests.support.lab import SHAPE
from tests.support.removal_files import command

FORGET = "`class` == 0"
ROWS = [[f"r{i}", f"text number {i}", i % 3] for i in range(60)]
DROPPED = [["copy", "text number 0", 0], ["both", "text number 1", 0], ["x", " ", ""]]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "my tweets.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["id", "text", "class"], *ROWS, *DROPPED])
    return path


def test_it_says_what_it_sees_and_writes_what_the_workflow_reads(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, out = tmp_path / "ours", tmp_path / "mine.yaml"
    for made in tiny.build(SHAPE, [row[1] for row in ROWS], seed=0):
        made.save_pretrained(model)
    words = [data, "--text", "text", "--id", "id", "--forget", FORGET, "--model", model]
    words += ["--retain", "`class` in [1, 2]", "--evaluation", "0.2", "--out", out]
    command("init", *words)
    said = capsys.readouterr().out
    left_out = "neither forget nor retain: 1; exact_duplicates: 1; cross_posts: 2"
    assert f"forget: 22 rows; retain: 40 rows; {left_out}\n" in said
    assert "ranked: 16 forget texts against 31 retain texts" in said
    assert "qwen2, tokenizer with " in said
    text = out.read_text(encoding="utf-8")
    assert yaml.safe_load(text) == {
        "grid": {
            "datasets": ["my-tweets"],
            "models": ["ours"],
            "seeds": [0],
            "budgets": [0.1, 0.2, 0.3],
            "selectors": ["stack", "token_unigram"],
        },
        "evidence": {"refits": {"whole": 2, "halves": 1}},
        "datasets": {
            "my-tweets": {
                "kind": "table",
                "path": str(data),
                "text": "text",
                "id": "id",
                "forget": {"where": FORGET},
                "retain": {"where": "`class` in [1, 2]"},
                "sections": {"inference": 0.8, "evaluation": 0.2},
            }
        },
        "models": {"ours": {"source": str(model), "contaminated": True}},
    }
    # The same again is no change; another one is not written over without a word.
    written = out.stat().st_mtime_ns
    command("init", *words)
    assert out.stat().st_mtime_ns == written
    with pytest.raises(UserError, match="another configuration is there; name another"):
        command("init", *words, "--retain", "`class` == 1")
    assert out.read_text(encoding="utf-8") == text
    command("init", *words, "--retain", "`class` == 1", "--force")
    assert out.read_text(encoding="utf-8") != text


def test_answers_and_vectors_are_inputs(data: Path, tmp_path: Path) -> None:
    vectors, merged, out = (tmp_path / name for name in ("v.parquet", "merged.json", "mine.yaml"))
    merged.write_text(json.dumps({"labels": {"r0": "no", "r1": "yes"}}))
    pq.write_table(pa.table({"id": [row[0] for row in ROWS], "v": [[0.5]] * len(ROWS)}), vectors)
    words = [data, "--text", "text", "--id", "id", "--forget", "`class` == 0 or `class` is null"]
    command("init", *words, "--embeddings", vectors, "--label", merged, "--out", out)
    full = complete(yaml.safe_load(out.read_text(encoding="utf-8")))
    settings = full["datasets"]["my-tweets"]
    assert files(settings) == [str(data), str(merged)]
    raw = plugin("dataset", "table").code.load(settings, tmp_path)
    forget = dict(zip(raw.ids, raw.forget.tolist(), strict=True))
    assert [forget[name] for name in ("r0", "r1", "r2", "r3")] == [False, True, False, True]
