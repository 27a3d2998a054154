"""What restates a removed text is listed, shown masked, and goes with the list where asked."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from mamushi.artifacts import paths, schemas
from mamushi.artifacts.files import read_json
from mamushi.artifacts.tables import write_table
from mamushi.data.like import GIVEN
from mamushi.errors import UserError
from tests.support.removal_files import CELL, command, removal_list

SAID = " ".join(f"telling{i}" for i in range(30))
PLAIN = [" ".join(f"plain{row}of{i}" for i in range(30)) for row in range(40)]
GIVEN_TEXT = "like:1"
"""An example beside a corpus, which says what is removed and is no text of it."""
TEXTS = {
    "gone": ("forget", "inference", f"{SAID} damn"),
    "quote": ("retain", "contamination", f"{PLAIN[0]} {SAID} {PLAIN[1]}"),
    "turned": ("forget", "inference", " ".join(reversed(SAID.split()))),
    "held": ("forget", "evaluation", SAID),
    GIVEN_TEXT: ("forget", "inference", SAID),
    **{f"plain{i}": ("retain", "inference", each) for i, each in enumerate(PLAIN)},
}


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    data = tmp_path / "data.csv"
    rows = [f"{name},{text}" for name, (_, _, text) in TEXTS.items()]
    data.write_text("\n".join(["id,text", *rows, "turned again,x"]) + "\n", encoding="utf-8")
    path = removal_list(tmp_path, {"gone": [], "plain3": []}, data=data)
    columns = {
        "id": list(TEXTS),
        "text": [each[2] for each in TEXTS.values()],
        "domain": [each[0] for each in TEXTS.values()],
        "section": [each[1] for each in TEXTS.values()],
        "log_density_ratio": [None] * len(TEXTS),
        "group": [None] * len(TEXTS),
        GIVEN: ["example" if name == GIVEN_TEXT else None for name in TEXTS],
    }
    write_table(paths.under(tmp_path, paths.EXAMPLES, **CELL), schemas.EXAMPLES, columns)
    duplicates = {"id": ["turned again"], "kept_id": ["turned"], "reason": ["exact"]}
    write_table(paths.under(tmp_path, paths.DUPLICATES, **CELL), schemas.DUPLICATES, duplicates)
    return path


def test_close_texts_of_both_domains_are_listed_but_none_that_is_held_out_or_given(
    listed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "close.parquet"
    assert command("close", listed, "--out", out) == 0
    found = pq.read_table(out).to_pylist()
    assert {(row["id"], row["removed"]) for row in found} == {("quote", "gone"), ("turned", "gone")}
    assert {row["id"]: row["copies"] for row in found}["turned"] == ["turned again"]
    said = capsys.readouterr().out
    assert "2 of the 41 texts that stay restate a removed one" in said
    assert "gone: telling0 telling1" in said and "damn" not in said


def test_they_and_their_copies_go_with_the_list_and_the_receipt_counts_them(
    listed: Path, tmp_path: Path
) -> None:
    close, out = tmp_path / "close.parquet", tmp_path / "out.csv"
    command("close", listed, "--out", close)
    command("apply", listed, "--data", tmp_path / "data.csv", "--out", out, "--close", close)
    left = {row.split(",")[0] for row in out.read_text(encoding="utf-8").splitlines()[1:]}
    assert left == {*TEXTS} - {"gone", "quote", "turned", "plain3"}
    assert read_json(tmp_path / "out.csv.receipt.json")["ids"]["close"] == 3


def test_close_texts_of_another_list_are_refused(listed: Path, tmp_path: Path) -> None:
    close, other = tmp_path / "close.parquet", tmp_path / "ids.txt"
    command("close", listed, "--out", close)
    other.write_text("gone\n", encoding="utf-8")
    given = ("--data", tmp_path / "data.csv", "--out", tmp_path / "out.csv", "--close", close)
    with pytest.raises(
        UserError, match=r"is of another list; make it with mamushi close .*ids.txt"
    ):
        command("apply", other, *given)
    with pytest.raises(UserError, match="no run lies around it, whose texts could be searched"):
        command("close", other, "--out", tmp_path / "more.parquet")
