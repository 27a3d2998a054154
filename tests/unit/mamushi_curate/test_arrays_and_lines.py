"""Arrays of JSON and lines of text, read and written again without some of them."""

import json
from pathlib import Path

import pytest

from mamushi.cli import main
from mamushi_curate.tables import readers

ROWS = [{"id": f"r{n}", "text": f"a, text [{n}]", "big": 2**60 + n} for n in range(4)]


@pytest.mark.parametrize("gone", [[1], [4], [2, 3]])
def test_an_array_is_read_and_written(tmp_path: Path, gone: list[int]) -> None:
    data, out = tmp_path / "d.json", tmp_path / "o.json"
    data.write_text("\ufeff" + json.dumps(ROWS, indent=2) + "\n", encoding="utf-8")
    table = readers.read_file_columns(data, ["id", "text", "big"])
    assert [*table.columns["big"]] == [row["big"] for row in ROWS]
    assert table.places[1] == "d.json, row 2"
    listed = tmp_path / "ids.txt"
    listed.write_text("".join(f"{n}\n" for n in gone))
    assert main(["apply", str(listed), "--rows", "--data", str(data), "--out", str(out)]) == 0
    rest = [row for n, row in enumerate(ROWS, 1) if n not in gone]
    assert json.loads(out.read_text(encoding="utf-8-sig")) == rest


def test_a_line_is_a_text(tmp_path: Path) -> None:
    data, out, listed = tmp_path / "d.txt", tmp_path / "o.txt", tmp_path / "ids.txt"
    data.write_bytes(b"\xef\xbb\xbfone\r\n\n two\nthree")
    table = readers.read_file_columns(data, ["text"])
    assert [*table.columns["text"]] == ["one", " two", "three"]
    listed.write_text("2\n")
    assert main(["apply", str(listed), "--rows", "--data", str(data), "--out", str(out)]) == 0
    assert out.read_bytes() == b"\xef\xbb\xbfone\r\n\nthree"
