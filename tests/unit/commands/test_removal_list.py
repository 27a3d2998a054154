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


def test_a_list_of_the_program_takes_its_copies_along(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = comments(tmp_path, column="key")
    made = removal_list(
        tmp_path / "results",
        {"c2": ["c5", "c6"], "c4": [], "c99": []},
        data=data,
        column="key",
    )
    words = ("apply", made, "--data", data, "--out", tmp_path / "clean.csv")
    with pytest.raises(
        UserError, match=r"1 of its 5 ids are not there \(column 'key', as 'c1'\): 'c99'"
    ):
        command(*words)
    assert not (tmp_path / "clean.csv").exists()
    command(*words, "--missing-ids")
    kept = (tmp_path / "clean.csv").read_text().split("\n")
    assert kept == ["key,text", "c1,text 1", "c3,text 3", "c7,text 7", "c8,text 8", ""]
    receipt = read_json(tmp_path / "clean.csv.receipt.json")
    assert receipt["ids"] == {
        "listed": 3,
        "copies": 2,
        "found": 4,
        "copies_found": 2,
        "not_found": ["c99"],
    }
    assert receipt["texts"] == {"compared": 4, "changed": 0}
    assert receipt["of"]["selector"] == "mamushi" and receipt["of"]["beta"] == 0.5
    said = capsys.readouterr().out
    assert "4 of 8 rows removed, 2 of them as copies" in said
    assert "1 ids of the list are not there, the first is 'c99'" in said


@pytest.mark.parametrize("column", ["key", None])
def test_a_list_that_is_copied_away_from_its_run_removes_the_same(
    column: str | None, tmp_path: Path
) -> None:
    data = comments(tmp_path, column="key")
    ids = {"c2": ["c5"], "c4": []} if column else {"2": ["5"], "4": []}
    made = removal_list(tmp_path / "results", ids, data=data, column=column)
    away = tmp_path / "away" / "list.parquet"
    away.parent.mkdir()
    shutil.copy(made, away)
    text = tmp_path / "ids.txt"
    command("export", made, "--to", "ids", "--out", text)
    for number, each in enumerate((made, away)):
        out = tmp_path / f"clean{number}.csv"
        command("apply", each, "--data", data, "--out", out)
        kept = [f"c{i},text {i}" for i in (1, 3, 6, 7, 8)]
        assert out.read_text().splitlines() == ["key,text", *kept]
    # Plain ids are of no column, and are no numbers of rows.
    with pytest.raises(UserError, match=r"no column 'id'; it has 'key', 'text'; .*--rows"):
        command("apply", text, "--data", data, "--out", tmp_path / "none.csv")


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


def test_a_list_of_an_earlier_ranking_is_refused(tmp_path: Path) -> None:
    data = comments(tmp_path)
    made = removal_list(tmp_path / "results", {"c2": []}, data=data)
    scores = paths.under(tmp_path / "results", paths.SCORES, **CELL, selector="mamushi")
    write_scores(scores, ["c2"], ["forget"], [1.0])
    about = read_metadata(made)
    about["provenance"]["inputs"]["scores"] = sha256(scores)
    write_table(made, schemas.REMOVALS, read_table(made, schemas.REMOVALS), metadata=about)
    command("apply", made, "--data", data, "--out", tmp_path / "clean.csv")
    write_scores(scores, ["c2"], ["forget"], [2.0])
    again = "is of an earlier ranking .*mamushi list --budget 0.50 --selector mamushi"
    with pytest.raises(UserError, match=again):
        command("apply", made, "--data", data, "--out", tmp_path / "again.csv")
    # Of a damaged one it is not known.
    scores.write_bytes(scores.read_bytes()[:-9])
    with pytest.raises(UserError, match=r"mamushi.parquet: damaged"):
        command("apply", made, "--data", data, "--out", tmp_path / "again.csv")


def test_files_of_another_run_are_refused(tmp_path: Path) -> None:
    data = comments(tmp_path)
    made = removal_list(tmp_path / "results", {"c2": ["c5"]}, data=data)
    removal_list(tmp_path / "other", {"c3": ["c6"]}, data=data)
    place = Path("data", str(CELL["dataset"]), "examples.parquet")
    shutil.copy(tmp_path / "other" / place, tmp_path / "results" / place)
    with pytest.raises(UserError, match=r"examples\.parquet: is of another run than"):
        command("audit", made, "--out", tmp_path / "o")
    assert not [*tmp_path.glob("o.*")]


def test_row_numbers_are_those_of_the_texts_that_were_ranked(tmp_path: Path) -> None:
    data = comments(tmp_path, column="key")
    made = removal_list(tmp_path / "results", {"2": ["8"]}, data=data, column=None)
    command("apply", made, "--data", data, "--out", tmp_path / "clean.csv")
    kept = (tmp_path / "clean.csv").read_text()
    assert "c2," not in kept and "c8," not in kept and kept.count("\n") == 7
    assert read_json(tmp_path / "clean.csv.receipt.json")["id"].startswith("the number of the row")
    head, *rows = data.read_text().splitlines()
    other = tmp_path / "other.csv"
    other.write_text("\n".join([head, *reversed(rows)]))
    words = ("apply", made, "--data", other, "--out", tmp_path / "none.csv")
    with pytest.raises(UserError, match="the text of '2' is not the one that was ranked"):
        command(*words)
    with pytest.raises(UserError, match="say --rows as well if the numbers are those of this"):
        command(*words, "--changed-texts")
    command(*words, "--changed-texts", "--rows")


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
