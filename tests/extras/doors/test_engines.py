"""The doors of other engines: what they keep of documents, by the engines' own classes."""

from __future__ import annotations

import pickle
import shlex
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from datasets import Dataset

from mamushi.cli import main
from mamushi.errors import UserError
from mamushi_extras.doors.keeping import ListKeeper
from tests.support.lab import write_lab
from tests.support.removal_files import removal_list
from tests.support.scored_cells import rank_cell
from tests.support.workflow import ROOT
from tests.unit.test_docs import blocks

IDS = [f"c{i}" for i in range(8)]
TEXTS = [f"text of {name}" for name in IDS]
GONE = {"c1", "c3", "c6"}
STAYS = [name for name in IDS if name not in GONE]


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    """A list of two texts, one of which has a copy."""
    data = tmp_path / "data.csv"
    rows = [f"{name},{text}" for name, text in zip(IDS, TEXTS, strict=True)]
    data.write_text("\n".join(["id,text", *rows]) + "\n", encoding="utf-8")
    return removal_list(tmp_path / "results", {"c1": ["c6"], "c3": []}, data=data)


def test_a_keeper_is_a_filter_of_datasets(listed: Path) -> None:
    split = Dataset.from_dict({"id": [*map(str, IDS)], "text": TEXTS, "more": [*range(8)]})
    keeper = ListKeeper(listed)
    kept = split.filter(keeper, batched=True, batch_size=3, input_columns=["id", "text"])
    assert kept["id"][:] == STAYS and kept["more"][:] == [0, 2, 4, 5, 7]
    assert keeper.unseen() == []
    part = split.select(range(4))
    keeper = ListKeeper(listed)
    assert len(part.filter(keeper, batched=True, input_columns=["id", "text"])) == 2
    assert keeper.unseen() == ["c6"]


def test_no_row_goes_for_its_id_alone(listed: Path) -> None:
    with pytest.raises(UserError, match="document 'c3': the text of 'c3' is not the one that was"):
        ListKeeper(listed)(IDS, [text.replace("c3", "c4") for text in TEXTS])
    # Null is an empty text, and the listed one was none.
    with pytest.raises(UserError, match="the text of 'c3'"):
        ListKeeper(listed)(["c3"], [None])


def test_a_keeper_travels_as_the_name_of_its_file(listed: Path) -> None:
    """And is refused where that is another file now, as one process may not decide by another list
    than the next."""
    keeper = ListKeeper(listed)
    before = pickle.dumps(keeper)
    keeper(IDS, TEXTS)
    assert pickle.dumps(keeper) == before and len(before) < 2000
    there = pickle.loads(before)
    assert there(IDS, TEXTS) == [name not in GONE for name in IDS]
    again = pickle.loads(pickle.dumps(ListKeeper(listed)))
    listed.write_bytes(listed.read_bytes() + b"x")
    with pytest.raises(UserError, match="has changed since it was named"):
        again(IDS, TEXTS)


def test_a_list_that_cannot_tell_rows_apart_is_refused(tmp_path: Path) -> None:
    plain = tmp_path / "plain.txt"
    plain.write_text("c1\n", encoding="utf-8")
    with pytest.raises(UserError, match="has no digests of its texts"):
        ListKeeper(plain)
    data = tmp_path / "data.csv"
    data.write_text("text\na\nb\nc\n", encoding="utf-8")
    numbers = removal_list(tmp_path / "results", {"1": []}, data=data, column=None)
    with pytest.raises(UserError, match="names numbers of rows"):
        ListKeeper(numbers)


# datatrove ----------------------------------------------------------------------------------------


def test_datatrove_drops_the_listed_documents(listed: Path, tmp_path: Path) -> None:
    """In a pipeline that an executor of it runs in two tasks, whose statistics add up."""
    pytest.importorskip("datatrove")
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.readers import ParquetReader
    from datatrove.pipeline.writers import ParquetWriter

    from mamushi_extras.doors.datatrove import KeeperFilter

    for number in range(2):
        rows = zip(IDS[number::2], TEXTS[number::2], strict=True)
        table = pd.DataFrame(rows, columns=["id", "text"])
        table.to_parquet(tmp_path / f"in-{number}.parquet")
    executor = LocalPipelineExecutor(
        pipeline=[
            ParquetReader(str(tmp_path), glob_pattern="in-*.parquet"),
            KeeperFilter(ListKeeper(listed), ParquetWriter(str(tmp_path / "dropped")), 3),
            ParquetWriter(str(tmp_path / "out")),
        ],
        tasks=2,
        workers=1,
        logging_dir=str(tmp_path / "logs"),
    )
    stats = executor.run()
    assert ids_in(tmp_path / "out") == {*STAYS} and ids_in(tmp_path / "dropped") == GONE
    of_filter = stats.stats[1]
    assert of_filter["dropped_listed"].total == 3 and of_filter["forwarded"].total == 5


def ids_in(folder: Path) -> set[str]:
    return {name for file in folder.glob("*.parquet") for name in pd.read_parquet(file)["id"]}


# The page ----------------------------------------------------------------------------------------


def test_the_page_does_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its blocks, one after another, of a table that was ranked."""
    pytest.importorskip("datatrove")
    monkeypatch.chdir(tmp_path)
    rows = write_lab(tmp_path)
    rank_cell({"kind": "stack"})
    (tmp_path / "new").mkdir()
    frame = pd.read_csv("comments.csv")
    frame.to_json("new/part.jsonl", orient="records", lines=True)
    (tmp_path / "parquet").mkdir()
    frame.to_parquet("parquet/part.parquet")
    text = (ROOT / "docs/guide/doors.md").read_text(encoding="utf-8")
    for line in blocks(text, "sh")[0].splitlines():
        assert main(shlex.split(line)[1:]) == 0
    names: dict[str, Any] = {}
    for block in blocks(text, "python"):
        exec(compile(block, "doors.md", "exec"), names)
    keeper = names["keeper"]
    gone = keeper.opened.ids
    stays = {name for name, *_ in rows} - gone
    assert {*names["clean"]["id"]} == stays and keeper.unseen() == []
    scores = dict(zip(frame["id"], pd.read_parquet("scores.parquet")["score"], strict=True))
    assert dict(zip(names["scored"]["id"], names["scored"]["score"], strict=True)) == {
        name: scores[name] for name in names["clean"]["id"]
    }
    reader, door = names["pipeline"]
    assert {doc.id for doc in door.run(reader.run())} == stays
