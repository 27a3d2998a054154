"""Which rows a list names, wherever it lies: by its ids, by the texts under them, and by nothing
that happens to lie around it."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mamushi.errors import UserError
from mamushi.io import paths, schemas
from mamushi.io.files import read_json, sha256
from mamushi.io.tables import read_metadata, read_table, write_table
from tests.support.removal_files import CELL, command, removal_list
from tests.support.score_files import write_scores


def comments(folder: Path, *, column: str = "id") -> Path:
    data = folder / "comments.csv"
    rows = "".join(f"c{i},text {i}\n" for i in range(1, 9))
    data.write_text(f"{column},text\n{rows}", encoding="utf-8")
    return data


@pytest.mark.parametrize("column", ["key", None])
def test_a_list_removes_its_copies_wherever_it_lies(column: str | None, tmp_path: Path) -> None:
    data, out = comments(tmp_path, column="key"), tmp_path / "clean.csv"
    ids = {"c2": ["c5"], "c4": []} if column else {"2": ["5"], "4": []}
    made = removal_list(tmp_path / "results", ids, data=data, column=column)
    away = tmp_path / "list.parquet"
    shutil.copy(made, away)
    for path in (made, away):
        command("apply", path, "--data", data, "--out", out)
        left = [f"c{i},text {i}" for i in (1, 3, 6, 7, 8)]
        assert out.read_text().splitlines() == ["key,text", *left]
        receipt = read_json(tmp_path / "clean.csv.receipt.json")
        assert receipt["ids"] == {
            "listed": 2,
            "copies": 1,
            "found": 3,
            "copies_found": 1,
            "not_found": [],
        }
        assert receipt["texts"] == {"compared": 3, "changed": 0}
        assert receipt["id"] == (column or "the number of the row, from 1")
        out.unlink()
    # Plain ids are of no column, and are no numbers of rows.
    (text := tmp_path / "ids.txt").write_text("c2\n")
    with pytest.raises(UserError, match=r"no column 'id'; it has 'key', 'text'; .*--rows"):
        command("apply", text, "--data", data, "--out", out)


def test_an_id_that_is_not_there_stops_unless_that_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, out = comments(tmp_path), tmp_path / "clean.csv"
    made = removal_list(tmp_path / "results", {"c2": ["c5"], "c99": []}, data=data)
    words = ("apply", made, "--data", data, "--out", out)
    says = r"1 of its 3 ids are not there \(column 'id', as 'c1'\): 'c99'"
    with pytest.raises(UserError, match=says):
        command(*words)
    assert not out.exists()
    command(*words, "--missing-ids")
    said = capsys.readouterr().out
    assert "2 of 8 rows removed, 1 of them as copies" in said
    assert "1 ids of the list are not there" in said


CHANGED: dict[str, Callable[[list[str]], list[str]]] = {
    "a text": lambda rows: [*rows[:1], rows[1].replace("text 2", "text two"), *rows[2:]],
    "ids": lambda rows: [f"c{9 - i},text {i}" for i in range(1, 9)],
    "a copy": lambda rows: [*rows[:4], "c5,other", *rows[5:]],
}


@pytest.mark.parametrize("change", CHANGED)
def test_other_texts_under_the_same_ids_stay_unless_that_is_asked_for(
    change: str, tmp_path: Path
) -> None:
    data, out = comments(tmp_path), tmp_path / "clean.csv"
    made = removal_list(tmp_path / "results", {"c2": ["c5"], "c4": []}, data=data)
    rows = CHANGED[change](data.read_text().splitlines()[1:])
    data.write_text("\n".join(["id,text", *rows]))
    with pytest.raises(UserError, match=r"is not the one that was ranked; .*--changed-texts"):
        command("apply", made, "--data", data, "--out", out)
    assert [path.name for path in tmp_path.glob("clean*")] == []
    command("apply", made, "--data", data, "--out", out, "--changed-texts")
    assert out.read_text().count("\n") == 5
    # White space around a text is no part of what was ranked.
    data.write_text("id,text\nc2,text 2 \nc5,  text 5\nc4,text 4\nc1,x\n")
    command("apply", made, "--data", data, "--out", tmp_path / "same.csv")
    assert (tmp_path / "same.csv").read_text() == "id,text\nc1,x\n"


def test_row_numbers_alone_are_not_taken_for_those_of_another_table(tmp_path: Path) -> None:
    data = comments(tmp_path)
    made = removal_list(tmp_path / "results", {"2": []}, data=data, column=None)
    words = ("apply", made, "--data", data, "--out", tmp_path / "clean.csv", "--changed-texts")
    with pytest.raises(UserError, match="say --rows as well if the numbers are those of this"):
        command(*words)
    command(*words, "--rows")


def test_a_list_of_an_earlier_ranking_or_another_run_is_refused(tmp_path: Path) -> None:
    data, root = comments(tmp_path), tmp_path / "results"
    made = removal_list(root, {"c2": []}, data=data)
    scores = paths.under(root, paths.SCORES, **CELL, selector="mamushi")
    write_scores(scores, ["c2"], ["forget"], [1.0])
    about = read_metadata(made)
    about["provenance"]["inputs"]["scores"] = sha256(scores)
    write_table(made, schemas.REMOVALS, read_table(made, schemas.REMOVALS), metadata=about)
    command("apply", made, "--data", data, "--out", tmp_path / "clean.csv")
    removal_list(tmp_path / "other", {"c3": ["c6"]}, data=data)
    place = Path("data", str(CELL["dataset"]), "examples.parquet")
    shutil.copy(tmp_path / "other" / place, root / place)
    with pytest.raises(UserError, match=r"examples\.parquet: is of another run than"):
        command("export", made, "--to", "jsonl", "--out", tmp_path / "o")
    assert not [*tmp_path.glob("o")]
    write_scores(scores, ["c2"], ["forget"], [2.0])
    again = "is of an earlier ranking .*mamushi list --budget 0.50 --selector mamushi"
    with pytest.raises(UserError, match=again):
        command("apply", made, "--data", data, "--out", tmp_path / "again.csv")


FLIPS = 400
"""Bits that are flipped in each file, drawn by chance."""


@pytest.mark.parametrize("windows", [None, {"action": "cut"}], ids=["texts", "windows"])
def test_no_flipped_bit_removes_another_row(windows: dict[str, str] | None, tmp_path: Path) -> None:
    """In any file that lies around a list, or in the list: the same rows go, or one line says why
    none do."""
    data = tmp_path / "comments.csv"
    rows = [f"{9 - i},word {i} and more" for i in range(1, 9)]
    data.write_text("\n".join(["key,body", *rows, ""]), encoding="utf-8")
    names = ["3", "5", "1"] if windows is None else ["3#0-6", "5#0-6", "1#0-6"]
    ids = {names[0]: [names[1]], names[2]: []}
    root = tmp_path / "results"
    about = dict(windows) if windows else None
    made = removal_list(root, ids, data=data, text="body", column="key", windows=about)

    def applied(name: str) -> bytes | None:
        out = tmp_path / f"{name}.csv"
        try:
            command("apply", made, "--data", data, "--out", out)
        except (UserError, LookupError, OSError, TypeError, ValueError):
            assert not out.exists() and not Path(f"{out}.receipt.json").exists()
            return None
        return out.read_bytes()

    right, refused, rng = applied("right"), 0, random.Random(0)
    for path in (made, made.with_suffix(".json"), *sorted(root.glob("data/*/*"))):
        kept = path.read_bytes()
        for number in range(FLIPS // 8):
            place = rng.randrange(len(kept) * 8)
            changed = bytearray(kept)
            changed[place // 8] ^= 1 << place % 8
            path.write_bytes(changed)
            found = applied(f"{path.name}{number}")
            assert found in (None, right), (path, place)
            refused += found is None
        path.write_bytes(kept)
    assert refused > FLIPS // 8
