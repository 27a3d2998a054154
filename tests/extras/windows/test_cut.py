"""Windows cut out of their documents: these go, all other values stay as they are."""

import csv
import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mamushi.errors import UserError
from mamushi.io.files import read_json
from mamushi_curate.removal import read_removal
from tests.support.removal_files import command, link, removal_list, write_duplicates

UNWANTED = 'Buy "it", \\now\\ é\U0001f600, Buy.\r\n\r\n'
TEXTS = {
    "a": f"First, a\tline.\n\n{UNWANTED}Last \U0001f600.",
    "b": "nothing to cut",
    "c": UNWANTED.strip(),
    "d": f'{UNWANTED}"kept", it says',
    "e": "",
}
LEFT = {"a": "First, a\tline.\n\nLast \U0001f600.", "d": '"kept", it says'}
"""Of those that are cut and stay; nothing would be left of c."""


def windows() -> dict[str, list[str]]:
    """A list of what is unwanted in a and c, in d as a copy, in two windows that overlap."""
    start, whole = TEXTS["a"].index("Buy"), len(UNWANTED)
    return {
        f"a#{start}-{start + 9}": ["d#0-9"],
        f"a#{start + 4}-{start + whole}": [f"d#4-{whole}"],
        f"c#0-{len(TEXTS['c'])}": [],
    }


def listed(
    data: Path,
    action: str = "cut",
    ids: Mapping[str, list[str]] | None = None,
    texts: Mapping[str, str] = TEXTS,
    **more: Any,
) -> Path:
    """A list in a run of the table with windows."""
    about = {"action": action, "labelled": more.pop("labelled", True)}
    given = windows() if ids is None else ids
    return removal_list(
        data.parent / "results", given, data=data, windows=about, texts=texts, **more
    )


def stay() -> dict[str, str]:
    return {name: text for name, text in {**TEXTS, **LEFT}.items() if name != "c"}


def write_lines(path: Path, texts: Mapping[str, str], ascii_only: bool) -> None:
    rows = [
        {"texts": "other", "no": [{"text": "}"}, 1.5, 2**70], "id": name, "text": text}
        for name, text in texts.items()
    ]
    dumped = (f"{json.dumps(row, ensure_ascii=ascii_only)}\r\n" for row in rows)
    path.write_bytes(b"\xef\xbb\xbf" + "".join(dumped).encode())


def write_cells(path: Path, texts: Mapping[str, str]) -> None:
    with path.open("w", encoding="utf-8-sig", newline="") as handle:
        writer = csv.writer(handle, delimiter="\t" if path.suffix == ".tsv" else ",")
        rows = [(f'"{name}"', name, text, "x\ny") for name, text in texts.items()]
        writer.writerows([("what", "id", "text", "end"), *rows])


def write_columns(path: Path, texts: Mapping[str, str], kind: pa.DataType) -> None:
    columns = {"id": [*texts], "text": pa.array(texts.values(), kind), "n": [1.5] * len(texts)}
    table = pa.table(columns).replace_schema_metadata({"mine": "kept"})
    pq.write_table(table, path, row_group_size=2)


WRITE: dict[str, Callable[[Path, Mapping[str, str]], None]] = {
    "escaped.jsonl": partial(write_lines, ascii_only=True),
    "plain.jsonl": partial(write_lines, ascii_only=False),
    "cells.csv": write_cells,
    "cells.tsv": write_cells,
    "texts.parquet": partial(write_columns, kind=pa.string()),
    "codes.parquet": partial(write_columns, kind=pa.dictionary(pa.int32(), pa.string())),
}


@pytest.mark.parametrize("name", WRITE)
def test_a_window_goes_and_all_else_stays(tmp_path: Path, name: str) -> None:
    data, expected, out = (tmp_path / f"{kind}-{name}" for kind in ("data", "expected", "out"))
    WRITE[name](data, TEXTS)
    WRITE[name](expected, stay())
    command("apply", listed(data), "--data", data, "--out", out)
    if data.suffix == ".parquet":
        found, wanted = pq.read_table(out), pq.read_table(expected)
        assert found.schema.equals(wanted.schema, check_metadata=True)
        assert found.to_pylist() == wanted.to_pylist()
    else:
        assert out.read_bytes() == expected.read_bytes()
    receipt = read_json(tmp_path / f"{out.name}.receipt.json")
    rows = {"read": 5, "on_the_list": 1, "others": 4}
    assert receipt["rows"] == rows and receipt["ids"]["not_found"] == []
    assert (receipt["ids"]["copies"], receipt["ids"]["copies_found"]) == (2, 2)
    assert receipt["cut"] == {"rows": 2, "characters": 2 * len(UNWANTED) + len(TEXTS["c"])}


def test_of_windows_to_remove_whole_documents_go_with_their_copies(tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    texts = {"a": "one and two and three", "b": "none", "c": "one and tw"}
    rows = "".join(f"{name},{text}\n" for name, text in texts.items())
    data.write_text(f"id,text\n{rows}", encoding="utf-8")
    found = listed(data, "remove", {"a#14-20": [], "a#0-9": ["c#0-9"]}, texts)
    assert {*read_removal(found).ids_with_copies()} == {"a", "c"}
    command("apply", found, "--data", data, "--out", tmp_path / "clean.csv")
    assert (tmp_path / "clean.csv").read_text("utf-8") == "id,text\nb,none\n"
    # What the document goes for has to stand where it was.
    data.write_text(f"id,text\n{rows.replace('two and', 'too and')}", encoding="utf-8")
    command("apply", found, "--data", data, "--out", tmp_path / "same.csv")
    data.write_text(f"id,text\n{rows.replace('three', 'throe')}", encoding="utf-8")
    with pytest.raises(UserError, match="the text of 'a' is not the one that was ranked"):
        command("apply", found, "--data", data, "--out", tmp_path / "other.csv")


def test_where_windows_have_labels_a_document_goes_for_one_that_is_listed(tmp_path: Path) -> None:
    """And a copy of another of its windows takes no document along."""
    data = tmp_path / "data.csv"
    data.write_text("id,text\na,x\nb,y\nc,z\n", encoding="utf-8")
    texts = {name: "one and two and three" for name in "abc"}
    copies = [("b#0-4", "a#14-20", "exact", "0"), ("c#0-9", "a#0-14", "exact", "0")]
    for labelled, gone in ((True, {"a", "b", "c"}), (False, {"a", "c"})):
        found = listed(data, "remove", {"a#0-14": ["c#0-9"]}, texts, labelled=labelled)
        write_duplicates(tmp_path / "results", copies)
        assert {*read_removal(link(found)).ids_with_copies()} == gone


@pytest.mark.parametrize("column", ["id", None])
def test_windows_are_cut_where_they_are_what_was_ranked(tmp_path: Path, column: str | None) -> None:
    """Also near copies, and those of rows by their numbers; else nothing is written."""
    data, out = tmp_path / "data.csv", tmp_path / "clean.csv"
    first, second = ("a", "b") if column else ("1", "2")
    texts = {first: "say buy it now, please", second: "buy it how? no"}
    whole = f'id,text\na,"{texts[first]}"\nb,{texts[second]}\n'
    data.write_text(whole, encoding="utf-8")
    ids = {f"{first}#4-16": [f"{second}#0-12"]}
    found = listed(data, ids=ids, texts=texts, column=column)
    data.write_text(whole.replace("how", "now") + "c,\n", encoding="utf-8")
    for words in ((), ("--changed-texts",)):
        with pytest.raises(UserError, match=rf"row 2 .*text of '{second}' is not the one that was"):
            command("apply", found, "--data", data, "--out", out, *words)
        assert not out.exists()
    data.write_text(whole + "c,\n", encoding="utf-8")
    command("apply", found, "--data", data, "--out", out)
    assert out.read_text("utf-8") == "id,text\na,say please\nb,no\nc,\n"
