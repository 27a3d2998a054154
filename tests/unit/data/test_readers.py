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


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_zip_flipped_anywhere_is_told_or_the_same(tmp_path: Path, method: int) -> None:
    path = tmp_path / "a.csv.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
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
    # LZMA's version and the size of its dictionary hardly matter, nor do bits of padding.
    assert told > size / 2


def test_zip_packed_in_an_unknown_way_says_to_unpack_it(tmp_path: Path) -> None:
    path = zipped(write_csv(tmp_path / "a.csv"))
    whole = bytearray(path.read_bytes())
    # The method of the member, in its own header and in the archive's list: Deflate64.
    for position in (8, whole.index(b"PK\x01\x02") + 10):
        whole[position : position + 2] = (9).to_bytes(2, "little")
    path.write_bytes(whole)
    with pytest.raises(UserError, match=r"a\.csv\.zip: packed in a way .*; unpack it"):
        readers.read_file_columns(path, ["text"])


def test_half_of_a_character_is_no_damage_of_the_file() -> None:
    with pytest.raises(UserError, match=r"holds \\ud800, half of a character .*lone surrogate"):
        readers.check_text("a\ud800", "a.jsonl, row 1")
    readers.check_text("a\U0001f600", "a.jsonl, row 1")


def test_a_key_that_is_there_twice_elsewhere_does_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": 1, "x": 1, "x": 2, "y": {"id": 1, "id": 2}}\n')
    assert readers.read_file_columns(path, ["id"]).columns == {"id": [1]}


def test_a_name_that_is_not_utf8_is_shown_with_escapes(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/d\xe9.csv"))
    path.write_text("id\n1\n")
    table = readers.read_file_columns(path, ["id"])
    assert table.file == r"d\xe9.csv" and table.places == [r"d\xe9.csv, row 1 (line 2)"]
    assert [*table.digests] == [path.name]
