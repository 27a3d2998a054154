"""A list in the forms that other tools read, by their own loaders where they are installed."""

from pathlib import Path

import datasets

from mamushi.io import paths
from tests.support.removal_files import CELL, command, link, removal_list
from tests.support.score_files import write_examples


def test_ids_come_back(tmp_path: Path) -> None:
    data, out, clean = (tmp_path / name for name in ("comments.csv", "ids.txt", "clean.csv"))
    rows = [f"c{i},text {i}\n" for i in range(1, 9)]
    data.write_text("".join(["key,body\n", *rows]), encoding="utf-8")
    gone = {"c2": ["c5"], "c4": []}
    listed = removal_list(tmp_path / "results", gone, data=data, text="body", column="key")
    command("export", listed, "--to", "ids", "--out", out)
    assert out.read_text() == "c2\nc5\nc4\n"
    # And are a list themselves.
    command("apply", out, "--data", data, "--out", clean, "--id", "key")
    left = [rows[at] for at in (0, 2, 5, 6, 7)]
    assert clean.read_text() == "".join(["key,body\n", *left])


def test_load_dataset_reads_the_splits_of_what_was_ranked(tmp_path: Path) -> None:
    listed = removal_list(tmp_path / "results", {"a": []}, data=tmp_path / "no")
    names = ["a", "b", "c", "d"]
    write_examples(
        paths.under(tmp_path / "results", paths.EXAMPLES, **CELL),
        names,
        ["forget"] * 4,
        text=[f"text {name}" for name in names],
        section=["inference", "inference", "evaluation", "contamination"],
    )
    out = tmp_path / "out"
    command("export", link(listed), "--to", "jsonl", "--out", out)
    datasets.disable_progress_bars()
    for split, name in (("forget", "a"), ("retain", "b")):
        rows = datasets.load_dataset(str(out), split=split, cache_dir=str(tmp_path / "cache"))
        assert rows.to_list() == [{"id": name, "text": f"text {name}"}]
