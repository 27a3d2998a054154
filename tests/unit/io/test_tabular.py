"""Which files are a table: all that is there, or one line names what is not read."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mamushi.errors import UserError
from mamushi.io import tabular


def write(path: Path, content: str = "x") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


@pytest.mark.parametrize(
    "add",
    [
        *("part-2.csv.bz2", "part-2.jsonl.tmp", "part-2", "part-2.json.gz", "a/b/part-2.json.gz"),
        lambda path: write(path / "_delta_log" / "0.json"),
        lambda path: (path / "part-2.jsonl").symlink_to("no"),
        lambda path: os.mkfifo(path / "part-2.jsonl"),
    ],
)
def test_what_may_hold_rows_and_is_not_read_is_named(
    tmp_path: Path, add: str | Callable[[Path], object]
) -> None:
    for number in range(2):
        write(tmp_path / f"part-{number}.jsonl")
    if isinstance(add, str):
        write(tmp_path / add)
    else:
        add(tmp_path)
    with pytest.raises(UserError, match=r"holds what is not read with it: (part-2|_delta_log)"):
        tabular.find(tmp_path)


def test_of_a_saved_data_set_all_counts_that_its_state_lists(tmp_path: Path) -> None:
    state: dict[str, object] = {"_data_files": [{"filename": "a.arrow"}], "_fingerprint": "x"}
    for name, content in {"a.arrow": "", "b.arrow": "", tabular.STATE: json.dumps(state)}.items():
        write(tmp_path / name, content)
    assert tabular.find(tmp_path) == [tmp_path / "a.arrow"]
    state["_indices_data_files"] = [{"filename": "i.arrow"}]
    write(tmp_path / tabular.STATE, json.dumps(state))
    with pytest.raises(UserError, match="lists rows by their indices"):
        tabular.find(tmp_path)
