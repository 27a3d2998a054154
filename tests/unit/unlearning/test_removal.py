"""Removal lists of any format: the same ids, or one line of what is wrong."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mamushi.errors import error_line
from mamushi.io import schemas
from mamushi.io.tables import write_table
from mamushi.unlearning.removal import read_list
from tests.support.score_files import unknown_texts

IDS = ["b", "a", "ü 1"]
LISTS = {
    "list.csv": "other,id\n1,b\n1,a\n1,ü 1\n",
    "list.tsv": "id\tother\nb\t1\na\t1\nü 1\t1\n",
    "list.jsonl": '{"id": "b"}\n{"id": "a"}\n{"id": "ü 1"}\n',
    "list.txt": "\ufeffb\r\n\n  a \nü 1\nb",
    "ids": "b\na\nü 1\n",
}


def test_every_format_gives_the_same_ids(tmp_path: Path) -> None:
    pq.write_table(pa.table({"other": [1, 2, 3], "id": IDS}), tmp_path / "own.parquet")
    removals = {"id": IDS, "score": [3.0, 2.0, 1.0], "rank": [1, 2, 3], **unknown_texts(3)}
    write_table(tmp_path / "removals.parquet", schemas.REMOVALS, removals)
    for name, content in LISTS.items():
        (tmp_path / name).write_bytes(content.encode())
    for name in ("own.parquet", "removals.parquet", *LISTS):
        assert read_list(tmp_path / name)["id"].to_pylist() == IDS, name


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", "\n \n", "names no id"),
        ("a.csv", "name\nx\n", "no column 'id'"),
        ("a.jsonl", '{"id": "a"}\n{"other": "b"}\n', "names no id in a row"),
        ("a.parquet", "nothing", "Parquet"),
    ],
)
def test_bad_lists_are_told(name: str, content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(Exception, match=message) as caught:
        read_list(tmp_path / name)
    assert name in error_line(caught.value)
