"""Reading tables: every format gives the same, and every kind of damage is told with its place."""

from __future__ import annotations

import json
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
        table = readers.read(path, ["text", "id"])
        assert table.columns == {"text": TEXTS, "id": ["0", "1", "2", "3"]}, path
        assert len(table.places) == len(TEXTS)
        assert table.places[2].startswith(f"{path.name}, row 3")
    # The second row spans two lines.
    assert readers.read(paths[0], ["id"]).places[2] == "a.csv, row 3 (line 5)"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b'id,text\n1,"a\nb"\n2,b\xe4d\n', r"a\.csv, row 2 \(line 4\): not valid UTF-8"),
        ("a.csv", b"id,body\n1,a\n", r"no column 'text'; it has 'id', 'body'"),
        ("a.csv", b"id,text\n1,a\n2\n", r"row 2 \(line 3\): 1 fields where the header has 2"),
        ("a.csv", b'id,text\n1,a\n2,"open\n', r"row 1 \(line 2\): not well-formed from here on"),
        ("a.csv", b'"id"x,text\n1,a\n', r"a\.csv, header: not well-formed from here on \("),
        ("a.csv", b'"id,text\n1,a\n', r"a\.csv, header: not well-formed from here on \("),
        ("a.jsonl", b'{"id": 1, "text": "a"}\n{"id"\n', r"a\.jsonl, row 2: not valid JSON"),
        ("a.jsonl", b'{"id": 1, "text": "a"}\n{"id": "\xe4"}\n', r"row 2: not valid UTF-8"),
        ("a.jsonl", b'{"id": 1}\n', r"no column 'text'; it has 'id'"),
        ("a.xlsx", b"PK", r"cannot tell the format from the ending '\.xlsx'; known are"),
    ],
)
def test_bad_files(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(UserError, match=message):
        readers.read(path, ["id", "text"])


def test_zip_cut_anywhere_is_told(tmp_path: Path) -> None:
    path = zipped(write_csv(tmp_path / "a.csv"))
    whole = path.read_bytes()
    for cut in range(0, len(whole), 7):
        path.write_bytes(whole[:cut])
        with pytest.raises(UserError, match="truncated or damaged zip"):
            readers.read(path, ["text"])


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_zip_flipped_anywhere_is_told_or_the_same(tmp_path: Path, method: int) -> None:
    path = tmp_path / "a.csv.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("a.csv", "text\n" + "one\ntwo\n" * 50)
        size = archive.getinfo("a.csv").compress_size
    intact = readers.read(path, ["text"])
    assert len(intact.places) == 100
    whole = path.read_bytes()
    told = 0
    start = 30 + len("a.csv")
    for position in range(start, start + size):
        flipped = bytearray(whole)
        flipped[position] ^= 0xFF
        path.write_bytes(flipped)
        try:
            assert readers.read(path, ["text"]) == intact
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
        readers.read(path, ["text"])


def test_invalid_utf8_in_parquet_names_the_column(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    array = pa.array([b"good", b"b\xe4d"]).view(pa.string())
    pq.write_table(pa.table({"text": array}), path)
    with pytest.raises(UserError, match="column 'text' holds string that cannot be read"):
        readers.read(path, ["text"])


def test_a_column_that_parquet_has_twice_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table([["a"], ["b"], ["c"]], names=["text", "id", "text"]), path)
    with pytest.raises(UserError, match="column 'text' is there 2 times"):
        readers.read(path, ["text"])
    assert readers.read(path, ["id"]).columns == {"id": ["b"]}
