"""Which files are a table: all that is there, or one line names what is not read."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mamushi.errors import UserError
from mamushi.io import tabular


def shards(folder: Path) -> Path:
    folder.mkdir()
    for number in range(2):
        (folder / f"part-{number}.jsonl").write_text('{"id": 1}\n')
    return folder


def beside(name: str, content: str = "x") -> Callable[[Path], object]:
    def write(folder: Path) -> None:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)

    return write


@pytest.mark.parametrize(
    ("add", "name"),
    [
        *((beside(name), name) for name in ("part-2.csv.bz2", "part-2.jsonl.tmp", "part-2")),
        (beside("part-2.json.gz"), "part-2.json.gz"),
        (beside("en/deep/part-2.json.gz"), "part-2.json.gz"),
        (beside("_delta_log/0.json"), "_delta_log"),
        (lambda at: (at / "part-2.jsonl").symlink_to("no"), "part-2.jsonl"),
        (lambda at: os.mkfifo(at / "part-2.jsonl"), "part-2.jsonl"),
    ],
)
def test_what_may_hold_rows_and_is_not_read_is_named(
    tmp_path: Path, add: Callable[[Path], object], name: str
) -> None:
    folder = shards(tmp_path / "d")
    add(folder)
    with pytest.raises(UserError, match=f"holds what is not read with it: {name}; take"):
        tabular.find(folder)


def test_of_a_saved_data_set_all_counts_that_its_state_lists(tmp_path: Path) -> None:
    folder = tmp_path / "d"
    folder.mkdir()
    state: dict[str, object] = {"_data_files": [{"filename": "a.arrow"}], "_fingerprint": "x"}
    beside("a.arrow")(folder)
    beside("cache-1.arrow")(folder)
    beside(tabular.STATE, json.dumps(state))(folder)
    assert tabular.find(folder) == [folder / "a.arrow"]
    state["_indices_data_files"] = [{"filename": "i.arrow"}]
    beside(tabular.STATE, json.dumps(state))(folder)
    with pytest.raises(UserError, match="lists rows by their indices"):
        tabular.find(folder)
