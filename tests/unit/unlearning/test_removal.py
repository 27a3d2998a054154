"""Removal lists of any format: the same ids, or one line of what is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mamushi.errors import told
from mamushi.io import schemas
from mamushi.io.tables import write_table
from mamushi.unlearning.removal import read_ids
from tests.support.score_files import unknown_texts

IDS = ["b", "a", "ü 1"]


def test_every_format_gives_the_same_ids(tmp_path: Path) -> None:
    table = pa.table({"other": [1, 2, 3], "id": IDS})
    pq.write_table(table, tmp_path / "own.parquet")
    removals = {
        "id": IDS,
        "score": [3.0, 2.0, 1.0],
        "rank": [1, 2, 3],
        **unknown_texts(3),
    }
    write_table(tmp_path / "removals.parquet", schemas.REMOVALS, removals)
    (tmp_path / "list.csv").write_text("other,id\n" + "".join(f"1,{i}\n" for i in IDS))
    (tmp_path / "list.tsv").write_text("id\tother\n" + "".join(f"{i}\t1\n" for i in IDS))
    (tmp_path / "list.jsonl").write_text("".join(json.dumps({"id": i}) + "\n" for i in IDS))
    (tmp_path / "list.txt").write_bytes("\ufeffb\r\n\n  a \nü 1\nb".encode())
    (tmp_path / "ids").write_text("".join(f"{i}\n" for i in IDS), encoding="utf-8")
    names = ("own.parquet", "removals.parquet", "list.csv", "list.tsv", "list.jsonl", "list.txt")
    for name in (*names, "ids"):
        assert read_ids(tmp_path / name) == IDS, name


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", "\n \n", "names no id"),
        ("a.csv", "name\nx\n", "no column 'id'"),
        ("a.csv", "id,other\n,1\n", "names no id in a row"),
        ("a.jsonl", '{"id": "a"}\n{"other": "b"}\n', "names no id in a row"),
        ("a.parquet", "nothing", "Parquet"),
    ],
)
def test_bad_lists_are_told(name: str, content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(Exception, match=message) as caught:
        read_ids(tmp_path / name)
    assert name in told(caught.value)
