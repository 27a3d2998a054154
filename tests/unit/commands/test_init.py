"""The way in: what `mamushi init` sees in a table and a model, writes, asks for and refuses."""

import argparse
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from mamushi.config.complete import complete
from mamushi.config.sources import files
from mamushi.errors import UserError
from mamushi.lm import tiny
from mamushi.registry import load
from mamushi_curate.commands import init

SHAPE = {
    "family": "llama",
    "hidden_size": 16,
    "layers": 2,
    "heads": 2,
    "key_value_heads": 1,
    "intermediate_size": 32,
    "vocabulary_size": 280,
    "max_positions": 32,
}
ROWS: list[dict[str, Any]] = [
    {"id": f"r{i}", "text": f"text number {i}", "class": i % 3, "my score": i / 60}
    for i in range(60)
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "ours"
    built, tokenizer = tiny.build(SHAPE, [row["text"] for row in ROWS], seed=0)
    built.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def started(*words: str | Path) -> None:
    """The command with these words."""
    parser = argparse.ArgumentParser()
    init.arguments(parser)
    init.run(parser.parse_args(list(map(str, words))))


def csv_of(rows: list[dict[str, Any]] = ROWS, separator: str = ",") -> bytes:
    lines = [rows[0].keys(), *(row.values() for row in rows)]
    return "".join(separator.join(map(str, line)) + "\n" for line in lines).encode()


FORGET = "`class` == 0"


# What is written ----------------------------------------------------------------------------------


def test_it_says_what_it_sees_and_writes_what_the_workflow_reads(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [*ROWS, ROWS[0] | {"id": "copy"}, ROWS[1] | {"id": "both", "class": 0}]
    rows += [{"id": f"x{i}", "text": " ", "class": "", "my score": ""} for i in range(3)]
    data, out = tmp_path / "my tweets.csv", tmp_path / "mine.yaml"
    data.write_bytes(csv_of(rows))
    words = [data, "--text", "text", "--id", "id", "--forget", FORGET, "--model", model]
    words += ["--retain", "`class` in [1, 2]", "--evaluation", "0.2", "--out", out]
    started(*words)
    said = capsys.readouterr().out
    assert f"{data}: 65 rows, 4 columns" in said
    assert "forget: 22 rows; retain: 40 rows; of neither, left out: 3" in said
    assert "empty: 0; copies: 1; in both domains, neither ranked nor listed: 2" in said
    assert "ranked: 16 forget texts against 31 retain texts" in said
    assert "llama, tokenizer with " in said
    text = out.read_text(encoding="utf-8")
    given = yaml.safe_load(text)
    assert given == {
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
    full = complete(given)
    raw = load("dataset", "table").load(full["datasets"]["my-tweets"], tmp_path)
    assert raw.dropped == {"neither forget nor retain": 3}
    # The same again is no change; another one is not written over without a word.
    started(*words)
    assert "there already, with the same content" in capsys.readouterr().out
    with pytest.raises(UserError, match="another configuration is there; name another"):
        started(*words, "--retain", "`class` == 1")
    assert out.read_text(encoding="utf-8") == text
    started(*words, "--retain", "`class` == 1", "--force")
    assert out.read_text(encoding="utf-8") != text


def test_peoples_answers_overrule_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, vectors, out = (tmp_path / name for name in ("data.csv", "vec.parquet", "mine.yaml"))
    data.write_bytes(csv_of())
    rows = [{"id": row["id"], "vector": [0.5, float(i)]} for i, row in enumerate(ROWS)]
    pq.write_table(pa.Table.from_pylist(rows), vectors)
    words = [data, "--text", "text", "--id", "id", "--forget", FORGET, "--out", out]
    words += ["--embeddings", vectors]
    started(*words)
    before = yaml.safe_load(out.read_text(encoding="utf-8"))
    assert "answers" not in before["datasets"]["data"]
    was = load("dataset", "table").load(complete(before)["datasets"]["data"], tmp_path)
    forget = dict(zip(was.ids, was.forget.tolist(), strict=True))
    out_, into, same = "r0", "r1", "r3"
    assert (forget[out_], forget[into], forget[same]) == (True, False, True)
    merged = tmp_path / "merged.json"
    merged.write_text(json.dumps({"labels": {out_: "no", into: "yes", same: "yes"}}))
    capsys.readouterr()
    started(*words, "--label", merged, "--force")
    assert "  answers: 2 yes, 1 no\n" in capsys.readouterr().out
    settings = complete(yaml.safe_load(out.read_text(encoding="utf-8")))["datasets"]["data"]
    assert settings["answers"] == str(merged)
    # By content they are inputs of the workflow, as the table is.
    assert files(settings) == [str(data), str(merged)]
    now = load("dataset", "table").load(settings, tmp_path)
    expected = {**forget, out_: False, into: True}
    assert dict(zip(now.ids, now.forget.tolist(), strict=True)) == expected
    # A list is still known by the digest of the table alone.
    assert [*now.sources] == ["data.csv"]
