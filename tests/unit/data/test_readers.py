"""Reading tables: every format gives the same, and every kind of damage is told with its place."""

from __future__ import annotations

import gzip
import json
import os
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mamushi.data import readers
from mamushi.errors import UserError

TEXTS = ['one, "quoted"', "two\nlines", "three", "ünï"]


def write_csv(path: Path, delimiter: str = ",") -> Path:
    lines = [delimiter.join(("id", "text", "other"))]
    for i, text in enumerate(TEXTS):
        quoted = text.replace('"', '""')
        lines.append(delimiter.join((str(i), f'"{quoted}"', "x")))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


TWICE_PACKED = gzip.compress(gzip.compress(b"id\n1\n", mtime=0), mtime=0)


def zipped(path: Path, name: str | None = None) -> Path:
    target = path.with_name(path.name + ".zip")
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(path, name or path.name)
    path.unlink()
    return target


def test_formats_agree(tmp_path: Path) -> None:
    rows = [{"id": str(i), "text": text, "other": "x"} for i, text in enumerate(TEXTS)]
    jsonl = tmp_path / "a.jsonl"
    jsonl.write_text("\n".join(map(json.dumps, rows)) + "\n\n", encoding="utf-8")
    parquet = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_pylist(rows), parquet)
    paths = [
        write_csv(tmp_path / "a.csv"),
        write_csv(tmp_path / "a.tsv", "\t"),
        jsonl,
        parquet,
        zipped(write_csv(tmp_path / "b.csv")),
        zipped(write_csv(tmp_path / "c.csv"), "folder/renamed.csv"),
    ]
    for path in paths:
        table = readers.read_file_columns(path, ["text", "id"])
        assert table.columns == {"text": TEXTS, "id": ["0", "1", "2", "3"]}, path
        assert len(table.places) == len(TEXTS)
        assert table.places[2].startswith(f"{path.name}, row 3")
    # The second row spans two lines.
    assert readers.read_file_columns(paths[0], ["id"]).places[2] == "a.csv, row 3 (line 5)"


def test_zip_flipped_anywhere_is_told_or_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.csv", "text\n" + "one\ntwo\n" * 50)
        size = archive.getinfo("a.csv").compress_size
    intact = readers.read_file_columns(path, ["text"])
    assert len(intact.places) == 100
    whole = path.read_bytes()
    told = 0
    start = 30 + len("a.csv")
    for position in range(start, start + size):
        flipped = bytearray(whole)
        flipped[position] ^= 0xFF
        path.write_bytes(flipped)
        try:
            assert readers.read_file_columns(path, ["text"]) == intact
        except UserError as error:
            assert "a.csv.zip: truncated or damaged zip" in str(error)
            told += 1
    assert told > size / 2


def test_half_of_a_character_is_no_damage_of_the_file() -> None:
    with pytest.raises(UserError, match=r"not valid UTF-8 \(surrogates not allowed: \\ud800"):
        readers.check_text("a\ud800", "a.jsonl, row 1")
    readers.check_text("a\U0001f600", "a.jsonl, row 1")


def test_a_name_that_is_not_utf8_is_shown_with_escapes(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/d\xe9.csv"))
    path.write_text("id\n1\n")
    table = readers.read_file_columns(path, ["id"])
    assert table.file == r"d\xe9.csv" and table.places == [r"d\xe9.csv, row 1 (line 2)"]
    assert [*table.digests] == [path.name]
