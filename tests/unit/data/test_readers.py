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
        ("a.xlsx", b"PK", r"cannot tell the format from the ending '\.xlsx'; save it as CSV"),
    ],
)
def test_bad_files(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(UserError, match=message):
        readers.read_file_columns(path, ["id", "text"])


def test_zip_cut_anywhere_is_told(tmp_path: Path) -> None:
    path = zipped(write_csv(tmp_path / "a.csv"))
    whole = path.read_bytes()
    for cut in range(0, len(whole), 7):
        path.write_bytes(whole[:cut])
        with pytest.raises(UserError, match="truncated or damaged zip"):
            readers.read_file_columns(path, ["text"])


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


def test_invalid_utf8_in_parquet_names_the_column(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    array = pa.array([b"good", b"b\xe4d"]).view(pa.string())
    pq.write_table(pa.table({"text": array}), path)
    with pytest.raises(UserError, match="column 'text' holds string that cannot be read"):
        readers.read_file_columns(path, ["text"])


def test_a_column_that_parquet_has_twice_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table([["a"], ["b"], ["c"]], names=["text", "id", "text"]), path)
    with pytest.raises(UserError, match="column 'text' is there 2 times"):
        readers.read_file_columns(path, ["text"])
    assert readers.read_file_columns(path, ["id"]).columns == {"id": ["b"]}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", b"\x1f\x8b\x08" + b"\0" * 20, r"is a gzip file; name it so, with \.gz at"),
        ("a.csv", b"PK\x03\x04" + b"\0" * 20, r"is a zip archive \(or an Excel workbook\)"),
        ("a.csv", b"\x28\xb5\x2f\xfd" * 5, "is a Zstandard file"),
        ("a.csv", b"PAR1" * 5, "is a Parquet file; name it by what it is"),
        ("a.csv", b"BZh9" * 5, "is a bzip2 file; unpack it"),
        ("a.csv", "id,text\n".encode("utf-16"), "is UTF-16 text; save it as UTF-8"),
        ("a.csv", "id,text\n".encode("utf-16-le"), "is UTF-16 text; save it as UTF-8"),
        ("a.jsonl", '{"id": 1}\n'.encode("utf-16-be"), "is UTF-16 text; save it as UTF-8"),
        ("a.csv", b"<!DOCTYPE html>\n<html>", "is a page of HTML"),
        ("a.csv", b"version https://git-lfs.github.com/spec/v1\n", "is a pointer of Git LFS"),
        ("a.csv.gz", b"id,text\n1,a\n", r"a\.csv\.gz: is not a gzip file, as it is named"),
        ("a.csv.gz", b"PK\x03\x04" + b"\0" * 20, "is a zip archive .*, not a gzip file"),
        ("a.csv.gz", TWICE_PACKED, r"is a gzip file \(in gz\)"),
        ("a.csv", b"id;text\n1;a\n", "its header is separated by semicolons, not by commas"),
        ("a.csv", b"id\ttext\n1\ta\n", r"separated by tabs, .*; save it with commas, or name it"),
        ("a.tsv", b"id,text\n1,a\n", r"separated by commas, not by tabs.*, or name it \.csv"),
        ("a.csv", b"sep=;\nid;text\n1;a\n", "begins with a line for Excel .* separate by commas"),
        ("a.csv", b"sep=,\nid,text\n1,a\n", "a line for Excel .*; take that line out$"),
        ("a.csv", b"id, text\n1,a\n", r"no column 'text'; it has 'id', ' text'"),
        ("a.csv", b"id,text,text\n1,a,b\n", "column 'text' is there 2 times"),
        ("a.csv", b"id,text\n1,a\0b\n", r"row 1 \(line 2\): holds a NUL character"),
        ("a.csv", b'id,text\n1,"a" b\n', "not well-formed from here on .*--quote none"),
        ("a.csv", b"id,text\n1,a\n\x1a", r"row 2 \(line 3\): 1 fields where the header has 2"),
        ("a.jsonl", b'{"id": 1, "text": "a", "id": 2}\n', "row 1: key 'id' is there more than"),
        ("a.jsonl", b'{"id": 1, "text": "a", "\\u0069d": 2}\n', "key 'id' is there more than once"),
        ("a.jsonl", b'{"id": 1, "text": "a"}\r{"id": 2}\r', "its lines end in CR alone"),
        ("a.jsonl", b'[{"id": 1, "text": "a"}]\n', "row 1: not a JSON object"),
        ("a.jsonl", b'{"id":' * 100_000, "row 1: not valid JSON"),
        ("a.jsonl", b'{"id": 1, "text": "a"} {"id": 2}\n', "row 1: not valid JSON"),
    ],
)
def test_a_file_is_called_what_it_is(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(UserError, match=message):
        readers.read_file_columns(path, ["id", "text"])


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
