"""What restates a removed text is listed, shown masked, and goes with the list where asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from mamushi.errors import UserError
from mamushi.io import paths, schemas
from mamushi.io.digests import of_text
from mamushi.io.files import read_json
from mamushi.io.tables import write_table
from mamushi_extras.unlabelled.like import GIVEN
from mamushi_extras.windows.windows import document_of, span_of, spans
from tests.support.removal_files import CELL, command, link, removal_list, write_duplicates

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
    write_duplicates(tmp_path, [("turned again", "turned", "exact", of_text("x"))])
    return link(path)


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


TURNED = " ".join(reversed(SAID.split()))
LONG = {
    "a": [PLAIN[0], SAID, PLAIN[1], f"{TURNED} again"],
    "quotes": [PLAIN[2], f"{PLAIN[3]} {SAID} more"],
    "copies": [f"{PLAIN[3]} {SAID} MORE".upper(), PLAIN[4]],
    "nearly": [PLAIN[5], f"{PLAIN[3]} {SAID} much more"],
    "harmless": [f"so {PLAIN[0]}", PLAIN[6]],
    "like:1": [SAID],
    **{f"plain{i}": [PLAIN[i], PLAIN[i + 1]] for i in range(10, 36, 2)},
}
"""Documents by their paragraphs, each of which is a window."""


def window(name: str, place: int, long: Mapping[str, list[str]] = LONG, **how: Any) -> str:
    """The id of a window of a document."""
    words, overlap = how.get("words", 100), how.get("overlap", 0)
    found = [*spans("\n\n".join(long[name]), words, overlap, "blank_line")]
    return f"{name}#{found[place][0]}-{found[place][1]}"


def list_of_windows(
    folder: Path,
    copies: Mapping[str, list[str]],
    duplicates: Mapping[str, tuple[str, str]],
    long: Mapping[str, list[str]] = LONG,
    **how: Any,
) -> Path:
    """A list of some windows; ``duplicates`` have which window was kept for one, and why."""
    folder.mkdir(exist_ok=True)
    data = folder / "long.jsonl"
    whole = {name: "\n\n".join(each) for name, each in long.items()}
    rows = [{"id": n, "text": text} for n, text in whole.items() if n != GIVEN_TEXT]
    data.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    about = {"labelled": how.pop("labelled", True), **how}
    path = removal_list(folder, copies, data=data, windows=about, texts=whole)
    columns: dict[str, Any] = {name: [] for name in ("id", "text", "domain", "section", GIVEN)}
    for name, text in whole.items():
        for start, stop in spans(text, how.get("words", 100), how.get("overlap", 0), "blank_line"):
            own = f"{name}#{start}-{stop}"
            given = "example" if name == GIVEN_TEXT else None
            row = (own, text[start:stop].strip(), "retain", "inference", given)
            for column, value in zip(columns.values(), row, strict=True):
                column += [value] * (own not in duplicates)
    columns |= {name: [None] * len(columns["id"]) for name in ("log_density_ratio", "group")}
    write_table(paths.under(folder, paths.EXAMPLES, **CELL), schemas.EXAMPLES, columns)
    kept, reasons = zip(*duplicates.values(), strict=True) if duplicates else ((), ())
    cuts = [whole[document_of(name)][slice(*span_of(name))] for name in duplicates]
    rows = zip(duplicates, kept, reasons, map(of_text, cuts), strict=True)
    write_duplicates(folder, [*rows])
    return link(path)


def closed(folder: Path, listed: Path) -> tuple[dict[str, list[str]], dict[str, str]]:
    """What is found, with its copies, and what is then left of the documents."""
    command("close", listed, "--out", folder / "close.parquet")
    found = pq.read_table(folder / "close.parquet").to_pylist()
    out, data = folder / "out.jsonl", folder / "long.jsonl"
    command("apply", listed, "--data", data, "--out", out, "--close", folder / "close.parquet")
    left = map(json.loads, out.read_text(encoding="utf-8").splitlines())
    return {row["id"]: row["copies"] for row in found}, {row["id"]: row["text"] for row in left}


def test_windows_that_restate_one_are_cut_with_their_copies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quote = window("quotes", 1)
    duplicates = {window("copies", 0): (quote, "exact"), window("nearly", 1): (quote, "near")}
    listed = list_of_windows(tmp_path, {window("a", 1): []}, duplicates, action="cut")
    found, left = closed(tmp_path, listed)
    assert found == {window("a", 3): [], quote: sorted(duplicates)}
    # A window has the white space behind it, so that of one at the end all before it stays.
    wanted = {name: "\n\n".join(each) for name, each in LONG.items() if name != GIVEN_TEXT}
    wanted |= {"a": f"{PLAIN[0]}\n\n{PLAIN[1]}\n\n", "quotes": f"{PLAIN[2]}\n\n"}
    wanted |= {"copies": PLAIN[4], "nearly": f"{PLAIN[5]}\n\n"}
    assert left == wanted
    said = capsys.readouterr().out
    assert "2 of the 35 windows that stay restate a removed one" in said
    assert "characters cut from 4 rows, with 4 close windows" in said
    receipt = read_json(tmp_path / "out.jsonl.receipt.json")
    assert (receipt["ids"]["listed"], receipt["ids"]["close"], receipt["ids"]["found"]) == (1, 4, 4)


def test_a_close_window_is_cut_where_it_is_the_text_that_was_ranked_alone(tmp_path: Path) -> None:
    listed = list_of_windows(tmp_path, {window("a", 1): []}, {}, action="cut")
    close, data = tmp_path / "close.parquet", tmp_path / "long.jsonl"
    command("close", listed, "--out", close)
    words = ("--data", data, "--out", tmp_path / "out.jsonl", "--close", close)
    whole = data.read_text(encoding="utf-8")
    data.write_text(whole.replace(f"{SAID} more", f"{SAID} else"), encoding="utf-8")
    with pytest.raises(UserError, match="the text of 'quotes' is not the one that was ranked"):
        command("apply", listed, *words)


def test_of_windows_that_overlap_what_is_cut_anyway_restates_nothing(tmp_path: Path) -> None:
    how: dict[str, Any] = {"words": 40, "overlap": 20, "action": "cut"}
    ends = (" ".join(f"{name}{i}" for i in range(10)) for name in ("one", "two", "three"))
    one, two, three = (f"{SAID} {PLAIN[0]} {end}" for end in ends)
    begin = " ".join(f"begin{i}" for i in range(30))
    long = {"a": [one], "b": [two], "c": [f"{begin} {three}"]}
    long |= {name: each for name, each in LONG.items() if name.startswith("plain")}
    first = {name: window(name, 0, long, **how) for name in long}
    duplicates = {first["b"]: (first["a"], "exact")}
    listed = list_of_windows(tmp_path, {first["a"]: [first["b"]]}, duplicates, long, **how)
    found, left = closed(tmp_path, listed)
    # Neither the second window of a, nor that of the document with a copy of the first.
    assert {name.split("#")[0] for name in found} == {"c"}
    assert left["c"].startswith("begin0") and "telling5" not in left["c"]
    assert left["plain10"] == "\n\n".join(LONG["plain10"])
    # A copy of the second window that stands where nothing is cut does.
    second = window("a", 1, long, **how)
    start, stop = map(int, second.split("#")[1].split("-"))
    long["d"] = [one[start:stop].strip()]
    duplicates[window("d", 0, long, **how)] = (second, "exact")
    copies = {first["a"]: [first["b"]]}
    listed = list_of_windows(tmp_path / "alone", copies, duplicates, long, **how)
    found, left = closed(tmp_path / "alone", listed)
    assert {name.split("#")[0] for name in found} == {"a", "c"}
    assert found[second] == [window("d", 0, long, **how)] and "d" not in left


def test_documents_go_whose_windows_restate_one_of_a_removed_document(tmp_path: Path) -> None:
    long = {**LONG, "copies": LONG["quotes"]}
    duplicates = {window("copies", i, long): (window("quotes", 0), "exact") for i in range(2)}
    listed = list_of_windows(tmp_path, {window("a", 0): []}, duplicates, long, action="remove")
    found, left = closed(tmp_path, listed)
    wanted = {"quotes", "nearly", "harmless"}
    assert {name.split("#")[0] for name in found} == wanted
    assert found[window("quotes", 1)] == sorted(duplicates)
    assert {*long} - {*left} == {"a", "copies", *wanted, GIVEN_TEXT}
    assert read_json(tmp_path / "out.jsonl.receipt.json")["ids"]["close"] == 4


def test_without_labels_documents_go_that_restate_a_listed_window(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And not those that restate another window of its document."""
    quote, own = window("quotes", 1), window("a", 1)
    duplicates = {window("copies", 0): (quote, "exact"), window("plain10", 0): (own, "exact")}
    copies = {own: [window("plain10", 0)]}
    listed = list_of_windows(tmp_path, copies, duplicates, action="remove", labelled=False)
    found, left = closed(tmp_path, listed)
    assert found == {quote: [window("copies", 0)], window("nearly", 1): []}
    gone = {"a", "plain10", "quotes", "copies", "nearly"}
    assert {*LONG} - {*left} == {*gone, GIVEN_TEXT}
    # Of documents that go no window stays: four of a, one of plain10.
    assert "2 of the 31 windows that stay restate a removed one" in capsys.readouterr().out
