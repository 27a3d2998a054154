"""Windows cut out of their documents: these bytes go, all others stay as they are."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mamushi.artifacts import paths, schemas
from mamushi.artifacts.files import read_json, write_json
from mamushi.artifacts.tables import write_table
from mamushi.commands import _removal_list
from mamushi.data import cutting
from mamushi.data.windows import document_of, span_of
from mamushi.errors import UserError
from tests.support.removal_files import CELL, command, removal_list

WHERE: dict[str, Any] = {**CELL}
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


def listed(data: Path, action: str = "cut", ids: Mapping[str, list[str]] | None = None) -> Path:
    """A list in a run of the table with windows."""
    root = data.parent / "results"
    found = removal_list(root, windows() if ids is None else ids, data=data)
    card = paths.under(root, paths.DATA_CARD, **WHERE)
    about = read_json(card)
    about["settings"]["loader"]["windows"] = {"words": 9, "overlap": 0, "action": action}
    write_json(card, about)
    names = [*(windows() if ids is None else ids)]
    columns: dict[str, Any] = {name: ["forget"] * len(names) for name in ("domain", "section")}
    columns["id"] = names
    cuts = [(TEXTS[document_of(name)], span_of(name)) for name in names]
    columns["text"] = [text[start:stop].strip() for text, (start, stop) in cuts]
    columns["log_density_ratio"] = pa.nulls(len(names), pa.float64())
    columns["group"] = pa.nulls(len(names), pa.string())
    write_table(paths.under(root, paths.EXAMPLES, **WHERE), schemas.EXAMPLES, columns)
    return found


def cut(data: Path, out: str, *words: str) -> Path:
    command("apply", listed(data), "--data", data, "--out", data.parent / out, *words)
    return data.parent / out


@pytest.mark.parametrize("ascii_only", [True, False], ids=["escaped", "plain"])
def test_of_json_lines_only_the_bytes_of_a_window_go(tmp_path: Path, ascii_only: bool) -> None:
    def lines(texts: Mapping[str, str]) -> bytes:
        rows = []
        for name in TEXTS:
            if name not in texts:
                continue
            text = json.dumps(texts[name], ensure_ascii=ascii_only).replace("/", "\\/")
            first = f'{{"text": "other",  "no": [{{"text": "}}"}}, 1.50], "id": "{name}" '
            rows.append(f'{first}, "text" :{text}, "z": null}}\r\n')
        return b"\xef\xbb\xbf" + "".join(rows).encode()

    data = tmp_path / "data.jsonl"
    data.write_bytes(lines(TEXTS))
    out = cut(data, "clean.jsonl")
    assert out.read_bytes() == lines(stay())
    receipt = read_json(tmp_path / "clean.jsonl.receipt.json")
    rows = {"read": 5, "on_the_list": 1, "others": 4, "without_an_id": 0}
    assert receipt["rows"] == rows and receipt["ids"]["not_found"] == []
    assert (receipt["ids"]["copies"], receipt["ids"]["copies_found"]) == (2, 2)
    assert receipt["cut"] == {"rows": 2, "characters": 2 * len(UNWANTED) + len(TEXTS["c"])}


def stay() -> dict[str, str]:
    return {name: text for name, text in {**TEXTS, **LEFT}.items() if name != "c"}


@pytest.mark.parametrize("kind", ["csv", "tsv"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_ALL, csv.QUOTE_MINIMAL])
def test_of_csv_quotes_and_line_ends_stay(tmp_path: Path, kind: str, quoting: int) -> None:
    data = tmp_path / f"data.{kind}"

    def content(texts: Mapping[str, str]) -> bytes:
        path = tmp_path / "rows"
        with path.open("w", encoding="utf-8-sig", newline="") as handle:
            mark = "\t" if kind == "tsv" else ","
            writer = csv.writer(handle, delimiter=mark, quoting=quoting)  # type: ignore[arg-type]
            rows = [(f'"{name}"', name, text, "x\ny") for name, text in texts.items()]
            writer.writerows([("what", "id", "text", "end"), *rows])
        return path.read_bytes()

    data.write_bytes(content(TEXTS))
    assert cut(data, f"clean.{kind}").read_bytes() == content(stay())


def test_a_cell_without_quotes_keeps_none_unless_it_would_begin_with_one() -> None:
    assert cutting.of_row('1,ab"c,2\r\n', ",", 1, {0}) == '1,b"c,2\r\n'
    row = cutting.of_row('1,ab"c",2\n', ",", 1, {0, 1})
    assert row == '1,"""c""",2\n' and next(csv.reader([row], strict=True)) == ["1", '"c"', "2"]
    assert cutting.of_row(",,x y", ",", 2, {1, 2}) == ",,x"


KINDS = [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_of_parquet_the_schema_and_all_other_columns_stay(
    tmp_path: Path, kind: pa.DataType
) -> None:
    def table(texts: Mapping[str, str]) -> pa.Table:
        columns = {"id": [*texts], "text": pa.array(texts.values(), kind), "n": [1.5] * len(texts)}
        return pa.table(columns).replace_schema_metadata({"mine": "kept"})

    data = tmp_path / "data.parquet"
    pq.write_table(table(TEXTS), data, row_group_size=2)
    found, wanted = pq.read_table(cut(data, "clean.parquet")), table(stay())
    assert found.schema.equals(wanted.schema, check_metadata=True)
    assert found.to_pylist() == wanted.to_pylist()


def test_windows_are_cut_from_rows_by_their_numbers(tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    data.write_text('text\n"say buy it now please"\n', encoding="utf-8")
    ids: dict[str, list[str]] = {"1#4-15": []}
    TEXTS["1"] = "say buy it now please"
    try:
        found = listed(data, ids=ids)
    finally:
        del TEXTS["1"]
    card = paths.under(tmp_path / "results", paths.DATA_CARD, **WHERE)
    about = read_json(card)
    about["settings"]["loader"]["id"] = None
    write_json(card, about)
    command("apply", found, "--data", data, "--out", tmp_path / "clean.csv")
    assert (tmp_path / "clean.csv").read_text("utf-8") == 'text\n"say please"\n'


def test_a_text_that_is_another_one_now_is_one_line_and_nothing_is_written(tmp_path: Path) -> None:
    data = tmp_path / "data.jsonl"
    rows = [{"id": name, "text": text} for name, text in TEXTS.items()]
    rows[0]["text"] = "A word more. " + rows[0]["text"]
    data.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    with pytest.raises(UserError, match=r"row 1: the text of 'a' is another one now"):
        cut(data, "clean.jsonl")
    assert not (tmp_path / "clean.jsonl").exists()


def test_a_list_of_windows_away_from_its_run_says_so(tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    data.write_text("id,text\n", encoding="utf-8")
    found = listed(data)
    about = read_json(found.with_suffix(".json")) | {"windows": {"words": 9}}
    copy = tmp_path / "copy.parquet"
    copy.write_bytes(found.read_bytes())
    write_json(copy.with_suffix(".json"), about)
    with pytest.raises(UserError, match="lists windows, and their texts are in its run"):
        _removal_list.read(copy)


def test_windows_to_cut_are_no_texts_for_a_ledger_or_an_export(tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    data.write_text("id,text\na,b\n", encoding="utf-8")
    for words in (("ledger", "add", listed(data)), ("export", listed(data), "--to", "jsonl")):
        out = ["--out", tmp_path / "out"] if words[0] == "export" else []
        with pytest.raises(UserError, match="lists windows of texts, and no texts"):
            command(*words, *out)


def test_of_windows_to_remove_whole_documents_go_with_their_copies(tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    data.write_text("id,text\na,x\nb,y\nc,z\n", encoding="utf-8")
    found = listed(data, "remove", {"a#14-20": [], "a#0-14": ["c#0-9"]})
    assert _removal_list.read(found).all == {"a", "c"}
    command("apply", found, "--data", data, "--out", tmp_path / "clean.csv")
    assert (tmp_path / "clean.csv").read_text("utf-8") == "id,text\nb,y\n"


def test_where_windows_have_labels_a_document_goes_for_one_that_is_listed(tmp_path: Path) -> None:
    """And a copy of another of its windows takes no document along."""
    data = tmp_path / "data.csv"
    data.write_text("id,text\na,x\nb,y\nc,z\n", encoding="utf-8")
    found = listed(data, "remove", {"a#0-14": ["c#0-9"]})
    known = {"id": ["b#0-4", "c#0-9"], "kept_id": ["a#14-20", "a#0-14"], "reason": ["exact"] * 2}
    where = paths.under(tmp_path / "results", paths.DUPLICATES, **WHERE)
    write_table(where, schemas.DUPLICATES, known, metadata={"examples": "0" * 64})
    assert _removal_list.read(found).all == {"a", "b", "c"}
    card = paths.under(tmp_path / "results", paths.DATA_CARD, **WHERE)
    about = read_json(card)
    about["settings"]["loader"]["forget"] = {"like": "examples.jsonl"}
    write_json(card, about)
    assert _removal_list.read(found).all == {"a", "c"}


def test_near_copies_are_cut_from_the_table_that_was_ranked_alone(tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    data.write_text('id,text\na,"say buy it now, please"\nb,buy it how? no\n', encoding="utf-8")
    TEXTS["a"], kept = "say buy it now, please", TEXTS["a"]
    try:
        found = listed(data, ids={"a#4-16": ["b#0-12"]})
    finally:
        TEXTS["a"] = kept
    known = {"id": ["b#0-12"], "kept_id": ["a#4-16"], "reason": ["near"]}
    where = paths.under(tmp_path / "results", paths.DUPLICATES, **WHERE)
    write_table(where, schemas.DUPLICATES, known, metadata={"examples": "0" * 64})
    other = tmp_path / "other.csv"
    other.write_text(data.read_text("utf-8") + "c,\n", encoding="utf-8")
    with pytest.raises(UserError, match="near copies are to be cut from it"):
        command("apply", found, "--data", other, "--out", tmp_path / "clean.csv")
    command("apply", found, "--data", data, "--out", tmp_path / "clean.csv")
    assert (tmp_path / "clean.csv").read_text("utf-8") == 'id,text\na,"say please"\nb,no\n'


def test_row_numbers_are_of_the_ranked_table_whatever_lay_beside_it(tmp_path: Path) -> None:
    """Examples of the domain are read too, and are no part of the table."""
    data = tmp_path / "data.csv"
    data.write_text("text\na\nb\n", encoding="utf-8")
    found = removal_list(tmp_path / "results", {"2": []}, data=data, column=None)
    card = paths.under(tmp_path / "results", paths.DATA_CARD, **WHERE)
    about = read_json(card)
    about["inputs"]["like examples.jsonl"] = "0" * 64
    write_json(card, about)
    command("apply", found, "--data", data, "--out", tmp_path / "clean.csv")
    assert (tmp_path / "clean.csv").read_text("utf-8") == "text\na\n"


def test_an_audit_is_of_windows_where_they_are_cut_alone(tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    data.write_text("id,text\na,x\n", encoding="utf-8")
    found = listed(data, "remove", {"a#0-14": []})
    with pytest.raises(UserError, match="lists documents, and windows were ranked"):
        command("audit", found, "--out", tmp_path / "audit")
