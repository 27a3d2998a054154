"""A list in the forms that other tools read, by their own loaders where they are installed."""

import json
from pathlib import Path
from typing import Any

import pytest

from mamushi.io import paths, schemas
from mamushi.io.digests import of_text
from mamushi.io.tables import read_metadata, read_table, write_table
from tests.support.removal_files import CELL, command, link, removal_list
from tests.support.score_files import write_examples

GONE = {"c2": ["c5"], "c4": []}
ROWS = [{"key": f"c{i}", "body": f"text {i}\nü"} for i in range(1, 9)]
FORGET = [row for row in ROWS if row["key"] in ("c2", "c4", "c5")]
RETAIN = [row for row in ROWS if row not in FORGET]


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    data = tmp_path / "comments.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    root = tmp_path / "results"
    return removal_list(root, GONE, data=data, text="body", column="key")


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_ids_come_back(listed: Path, tmp_path: Path) -> None:
    out = tmp_path / "ids.txt"
    command("export", listed, "--to", "ids", "--out", out)
    assert out.read_text() == "c2\nc5\nc4\n"
    # And are a list themselves.
    clean = tmp_path / "clean.jsonl"
    data = tmp_path / "comments.jsonl"
    command("apply", out, "--data", data, "--out", clean, "--id", "key")
    assert lines(clean) == RETAIN


def test_load_dataset_reads_its_splits(listed: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command("export", listed, "--to", "jsonl", "--data", tmp_path / "comments.jsonl", "--out", out)
    datasets = pytest.importorskip("datasets")
    datasets.disable_progress_bars()
    for split, rows in (("forget", FORGET), ("retain", RETAIN)):
        wanted = [{"id": row["key"], "text": row["body"]} for row in rows]
        assert lines(out / f"{split}.jsonl") == wanted
        found = datasets.load_dataset(str(out), split=split, cache_dir=str(tmp_path / "cache"))
        assert found.to_list() == wanted


def test_without_a_table_the_texts_are_those_that_were_ranked(tmp_path: Path) -> None:
    listed = removal_list(tmp_path / "results", {"a": []}, data=tmp_path / "no")
    about = read_metadata(listed)
    about["rows"] = {"kind": "newsgroups", "column": "id", "text": None, "windows": None}
    table = read_table(listed, schemas.REMOVALS).to_pylist()
    table[0]["text_sha256"] = of_text("text a")
    write_table(listed, schemas.REMOVALS, table, metadata=about)
    names = ["a", "b", "c", "d"]
    write_examples(
        paths.under(tmp_path / "results", paths.EXAMPLES, **CELL),
        names,
        ["forget"] * 4,
        text=[f"text {name}" for name in names],
        section=["inference", "inference", "evaluation", "contamination"],
    )
    command("export", link(listed), "--to", "jsonl", "--out", tmp_path / "out")
    assert lines(tmp_path / "out/forget.jsonl") == [{"id": "a", "text": "text a"}]
    assert lines(tmp_path / "out/retain.jsonl") == [{"id": "b", "text": "text b"}]
