"""Turns that a list cuts out of conversations, with their exchange; the file keeps its form."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from mamushi.data import cutting
from tests.support.removal_files import command, removal_list
from tests.unit.data.test_conversations import (
    FILES,
    WINDOWS,
    called,
    load,
    messages,
    read_arrow,
    write,
)

EXCHANGES: dict[str, tuple[str, list[int]]] = {
    "1": ("Be brief", [1, 2, 3, 4, 5, 6]),
    "2": ("What is", [0, 5, 6]),
    "3": ("found", [0, 5, 6]),
    "4": ("And", [0, 1, 2, 3, 4]),
    "5": ("Yes.", [0, 1, 2, 3, 4]),
    "6": ("found|Yes.", []),
    "7": ("nowhere", [0, 1, 2, 3, 4, 5, 6]),
}
"""By id, words of the turns that are listed, and the turns that are left."""


def two_exchanges(number: int) -> list[dict[str, Any]]:
    more = [{"role": "user", "content": "And?"}, {"role": "assistant", "content": "Yes.\n\nYes."}]
    return [messages(number)[0], *called(number), *more]


def of_form(name: str, turns: list[dict[str, Any]]) -> Any:
    if name == "conversations":
        return [{"from": t["role"], "value": t.get("content") or "call", "w": 1.5} for t in turns]
    return turns


CASES = [(name, file, "whole") for name in ("messages", "conversations") for file in FILES]


@pytest.mark.parametrize(("name", "file", "part"), [*CASES, ("messages", FILES[0], "assistant")])
def test_a_turn_is_cut_with_its_exchange_and_the_form_stays(
    name: str, file: str, part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = "messages,tools" if name == "messages" else name
    column, extra = text.partition(",")[0], {"tools": "[]"} if name == "messages" else {}
    rows = [
        {"id": n, column: of_form(name, two_exchanges(int(n))), "bad": int(n) % 2, **extra}
        for n in EXCHANGES
    ]
    path = write(tmp_path / file, rows)
    whole = load(path, text, part)
    raw = load(path, text, part, windows={**WINDOWS, "action": "cut"})
    marks = {n: words if part == "whole" else "Yes." for n, (words, _) in EXCHANGES.items()}
    listed = [
        window
        for window, said in zip(raw.ids, raw.texts, strict=True)
        if re.search(marks[window.partition("#")[0]], said)
    ]
    texts = dict(zip(whole.ids, whole.texts, strict=True))
    options = {"data": path, "text": text, "texts": texts, "part": part}
    cuts = dict.fromkeys(listed, ())
    removals = removal_list(Path("results"), cuts, windows={"action": "cut"}, **options)
    out = tmp_path / "out" / file
    out.parent.mkdir()
    assert command("apply", removals, "--data", path, "--out", out) == 0
    left = {n: kept if part == "whole" else [0, 1, 2, 3, 4] for n, (_, kept) in EXCHANGES.items()}
    expected = []
    for row in rows:
        turns = two_exchanges(int(row["id"]))
        if kept := [turns[at] for at in left[row["id"]]]:
            expected.append({**row, column: of_form(name, kept)})
    if "jsonl" in file:
        again = write(tmp_path / f"expected.{file.partition('.')[2]}", expected)
        unpack = gzip.decompress if file.endswith(".gz") else bytes
        assert unpack(out.read_bytes()) == unpack(again.read_bytes())
    else:
        before, after = (pairs_of(folder, column) for folder in (path, out))
        assert after == {row["id"]: drop(before[row["id"]], left[row["id"]]) for row in expected}
    receipt = json.loads((out.parent / f"{file}.receipt.json").read_text(encoding="utf-8"))
    # Of a conversation that goes, what the system says is cut by no window.
    turns = sum(7 - len(kept) if kept else 6 for kept in left.values())
    assert receipt["cut"] == {
        "rows": len(marks) - (2 if part == "whole" else 0),
        "characters": 0,
        "turns": turns,
    }
    assert receipt["rows"]["read"] == len(rows)
    assert receipt["rows"]["others"] == len(expected)


def pairs_of(path: Path, column: str) -> dict[str, Any]:
    """The conversations of a table by id."""
    if path.is_dir():
        read = pytest.importorskip("datasets").load_from_disk(str(path)).to_list()
    else:
        read = (pq.read_table(path) if path.suffix == ".parquet" else read_arrow(path)).to_pylist()
    return {row["id"]: row[column] for row in read}


def drop(turns: Any, kept: list[int]) -> Any:
    return [turns[at] for at in kept]


def test_of_a_list_in_json_the_bytes_of_what_stays_stay() -> None:
    line = '{ "m" : [ {"a": "]"} ,[2], 3 ], "m":[1 , "\\"]" ,{"x": [9]}  ], "z": 1.50}\r\n'
    cut = [cutting.of_line(line, "m", gone) for gone in ({0}, {1}, {2}, {0, 2})]
    left = ['"\\"]" ,{"x": [9]}  ', '1 ,{"x": [9]}  ', '1 , "\\"]"  ', '"\\"]"  ']
    head, tail = line.split('1 , "\\"]" ,{"x": [9]}  ')
    assert cut == [head + part + tail for part in left]
