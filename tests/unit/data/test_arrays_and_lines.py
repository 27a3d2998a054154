"""Arrays of JSON, lines of text and WARC, read and written again without some of them."""

import io
import json
from pathlib import Path

import pytest

from mamushi.cli import main
from mamushi.data import readers
from mamushi.errors import UserError

ROWS = [{"id": f"r{n}", "text": f"a, text [{n}]", "big": 2**60 + n} for n in range(4)]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("gone", [[1], [4], [1, 2], [2, 3], [1, 2, 3]])
def test_an_array_is_read_and_written_as_it_stands(
    tmp_path: Path, indent: int | None, gone: list[int]
) -> None:
    data, out = tmp_path / "d.json", tmp_path / "o.json"
    data.write_text("\ufeff" + json.dumps(ROWS, indent=indent) + "\n", encoding="utf-8")
    table = readers.read_file_columns(data, ["id", "text", "big"])
    assert table.columns["big"] == [row["big"] for row in ROWS]
    assert table.places[1] == "d.json, row 2"
    listed = tmp_path / "ids.txt"
    listed.write_text("".join(f"{n}\n" for n in gone))
    assert main(["apply", str(listed), "--rows", "--data", str(data), "--out", str(out)]) == 0
    rest = [row for n, row in enumerate(ROWS, 1) if n not in gone]
    assert json.loads(out.read_text(encoding="utf-8-sig")) == rest
    if 1 not in gone:
        assert out.read_text(encoding="utf-8-sig") == json.dumps(rest, indent=indent) + "\n"


def test_a_file_of_that_ending_may_have_an_object_a_line(tmp_path: Path) -> None:
    data = tmp_path / "d.json"
    data.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    assert readers.read_file_columns(data, ["id"]).columns["id"] == [row["id"] for row in ROWS]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ('[{"a": 1}, {"a": 2}', "row 2: not valid JSON from here on"),
        ('[{"a": 1}, ]', "row 2: not valid JSON from here on"),
        ('[{"a": 1} {"a": 2}]', "row 1: not valid JSON from here on"),
        ('[{"a": 1}] []', "row 1: not valid JSON from here on"),
        ('[{"a": 1}, 2]', "row 2: not a JSON object"),
        ('[{"a": 1, "a": 2}]', "row 1: key 'a' is there more than once"),
        ("[]", "no rows"),
    ],
)
def test_an_array_that_is_none_is_one_line(tmp_path: Path, content: str, line: str) -> None:
    data = tmp_path / "d.json"
    data.write_text(content)
    with pytest.raises(UserError, match=line):
        readers.read_file_columns(data, ["a"])


def test_a_line_is_a_text(tmp_path: Path) -> None:
    data, out, listed = tmp_path / "d.txt", tmp_path / "o.txt", tmp_path / "ids.txt"
    data.write_bytes(b"\xef\xbb\xbfone\r\n\n two\nthree")
    table = readers.read_file_columns(data, ["text"])
    assert table.columns["text"] == ["one", " two", "three"]
    listed.write_text("2\n")
    assert main(["apply", str(listed), "--rows", "--data", str(data), "--out", str(out)]) == 0
    assert out.read_bytes() == b"\xef\xbb\xbfone\r\n\nthree"


def test_several_files_of_lines_are_refused(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text("a text\n")
    with pytest.raises(UserError, match=r"several .txt files, of which a text may be a line or"):
        readers.read_file_columns(tmp_path, ["text"])


def warc(path: Path, kinds: list[str]) -> None:
    """Write a record of each kind, as warcio does."""
    writer_of = pytest.importorskip("warcio.warcwriter", reason="warcio is not installed")
    with path.open("wb") as file:
        writer = writer_of.WARCWriter(file, gzip=path.suffix == ".gz")
        for number, kind in enumerate(kinds):
            block = io.BytesIO(f"Text {number}\r\n\r\nof a page, ä\n".encode())
            record = writer.create_warc_record(
                f"https://example.org/{number}", kind, payload=block, length=len(block.getvalue())
            )
            writer.write_record(record)


def read_by_warcio(path: Path) -> list[tuple[str, str]]:
    """Id and text of each record that has one."""
    iterator = pytest.importorskip("warcio.archiveiterator").ArchiveIterator
    with path.open("rb") as file:
        return [
            (record.rec_headers["WARC-Record-ID"], record.content_stream().read().decode())
            for record in iterator(file, check_digests="raise")
            if record.rec_type == "conversion"
        ]


@pytest.mark.parametrize("name", ["d.warc", "d.warc.wet.gz"])
def test_texts_of_warc_are_read_and_written_as_warcio_reads_them(tmp_path: Path, name: str) -> None:
    data, out, listed = tmp_path / name, tmp_path / f"o.{name}", tmp_path / "ids.txt"
    warc(data, ["warcinfo", "conversion", "conversion", "metadata", "conversion"])
    rows = read_by_warcio(data)
    assert len(rows) == 3
    table = readers.read_file_columns(data, ["id", "text", "WARC-Target-URI"])
    assert [*zip(table.columns["id"], table.columns["text"], strict=True)] == rows
    assert table.columns["WARC-Target-URI"][0] == "https://example.org/1"
    listed.write_text(rows[1][0] + "\n")
    command = ["apply", str(listed), "--id", "id", "--data", str(data), "--out", str(out)]
    assert main(command) == 0
    assert read_by_warcio(out) == [rows[0], rows[2]]


def test_a_warc_that_has_no_texts_is_one_line(tmp_path: Path) -> None:
    data = tmp_path / "d.warc"
    warc(data, ["resource"])
    with pytest.raises(UserError, match=r"d.warc: holds pages as they were sent.*\.warc\.wet\.gz"):
        readers.read_file_columns(data, ["text"])
    warc(data, ["conversion", "conversion"])
    data.write_bytes(data.read_bytes()[:-30])
    with pytest.raises(UserError, match=r"d.warc, row 1: a WARC record behind here is cut off"):
        readers.read_file_columns(data, ["text"])
    data.write_bytes(b"nothing of it\n")
    with pytest.raises(UserError, match=r"d.warc: no WARC record behind here"):
        readers.read_file_columns(data, ["text"])
