"""A list in the forms that other tools read, by their own loaders where they are installed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mamushi.artifacts import paths, schemas
from mamushi.artifacts.tables import write_table
from mamushi.errors import UserError
from tests.support.removal_files import CELL, command, removal_list

GONE = {"c2": ["c5"], "c4": []}
ROWS = [{"key": f"c{i}", "body": f"text {i}\nü"} for i in range(1, 9)]
FORGET = [row for row in ROWS if row["key"] in ("c2", "c4", "c5")]
RETAIN = [row for row in ROWS if row not in FORGET]


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    data = tmp_path / "comments.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    root = tmp_path / "results"
    return removal_list(root, GONE, data=data, text="body", column="key", cross_posts=["c8"])


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_ids_come_back(listed: Path, tmp_path: Path) -> None:
    out = tmp_path / "ids.txt"
    command("export", listed, "--to", "ids", "--out", out)
    assert out.read_text() == "c2\nc5\nc4\n"
    # And are a list themselves.
    clean = tmp_path / "clean.jsonl"
    data = tmp_path / "comments.jsonl"
    command("apply", out, "--data", data, "--id", "key", "--out", clean)
    assert lines(clean) == RETAIN


def test_load_dataset_reads_its_splits(listed: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command("export", listed, "--to", "jsonl", "--out", out)
    datasets = pytest.importorskip("datasets")
    datasets.disable_progress_bars()
    for split, rows in (("forget", FORGET), ("retain", RETAIN)):
        wanted = [{"id": row["key"], "text": row["body"]} for row in rows]
        assert lines(out / f"{split}.jsonl") == wanted
        found = datasets.load_dataset(str(out), split=split, cache_dir=str(tmp_path / "cache"))
        assert found.to_list() == wanted


def test_texts_of_another_loader_are_the_ranked_examples(tmp_path: Path) -> None:
    listed = removal_list(tmp_path / "results", {"a": []}, data=tmp_path / "no")
    card = paths.under(tmp_path / "results", paths.DATA_CARD, **CELL)
    made = {"settings": {"kind": "newsgroups", "loader": {"path": "x.tar.gz"}}, "inputs": {}}
    card.write_text(json.dumps(made))
    rows = [("a", "inference"), ("b", "inference"), ("c", "evaluation"), ("d", "contamination")]
    columns = {
        "id": [name for name, _ in rows],
        "text": [f"text {name}" for name, _ in rows],
        "domain": ["forget"] * 4,
        "section": [section for _, section in rows],
        "log_density_ratio": [None] * 4,
        "group": [None] * 4,
    }
    import pyarrow as pa

    table = pa.table(columns).cast(schemas.EXAMPLES.schema)
    write_table(paths.under(tmp_path / "results", paths.EXAMPLES, **CELL), schemas.EXAMPLES, table)
    command("export", listed, "--to", "jsonl", "--out", tmp_path / "out")
    assert lines(tmp_path / "out/forget.jsonl") == [{"id": "a", "text": "text a"}]
    assert lines(tmp_path / "out/retain.jsonl") == [{"id": "b", "text": "text b"}]


def test_what_cannot_be_exported_is_one_line_and_writes_nothing(
    listed: Path, tmp_path: Path
) -> None:
    plain = tmp_path / "plain.txt"
    plain.write_text("c2\n")
    (tmp_path / "there").mkdir()
    data = tmp_path / "comments.jsonl"
    other = tmp_path / "other.jsonl"
    other.write_text('{"key": "c2", "body": 7}\n')
    before = {path.name for path in tmp_path.iterdir()}
    out = ["--out", tmp_path / "out"]
    for words, message in (
        ([*out], "nothing to export"),
        ([listed, "--to", "ids"], "nothing says what to write"),
        ([listed, *out], "nothing says as what; give --to: ids,"),
        ([plain, "--to", "jsonl", *out], "no run lies around it"),
        ([plain, "--to", "jsonl", "--data", data, *out], "none of its 1 ids is there"),
        ([listed, "--to", "jsonl", "--out", tmp_path / "there"], "exists already"),
        ([listed, "--to", "jsonl", "--data", other, *out], "column 'body' is 7, not text"),
    ):
        with pytest.raises(UserError) as raised:
            command("export", *words)
        assert message in str(raised.value)
    assert {path.name for path in tmp_path.iterdir()} == before
