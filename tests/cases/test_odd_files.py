"""Each of the odd files, lists and folders by every way in: what leaves, what is ranked, what is
exported, and what a frame of it has."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mamushi.cli import main
from mamushi.io.domains import name_of
from mamushi.io.files import read_json
from mamushi_curate import rewriting
from mamushi_curate.tables import readers
from mamushi_curate.tables.lines import Dialect
from tests.support.odd_files import (
    FIVE,
    FOLDERS,
    LINES,
    LISTS,
    Folder,
    Lines,
)


def named(case: Any) -> str:
    return f"{getattr(case, 'name', 'folder')}: {case.origin}".encode("unicode_escape").decode()


def ids_file(folder: Path, ids: Sequence[str]) -> Path:
    """A list as a table: plain text has no ids with white space around them."""
    path = folder / "l.jsonl"
    path.write_text("".join(json.dumps({"id": name}) + "\n" for name in ids), encoding="utf-8")
    return path


def apply(folder: Path, listed: Path, data: Path, *more: str) -> Path:
    """Where the table without the listed rows is, with a receipt beside it."""
    out = folder / "out" / data.name.removesuffix(".zip")
    assert main(["apply", str(listed), "--data", str(data), "--out", str(out), *more]) == 0
    return out


def refused(capsys: pytest.CaptureFixture[str], listed: Path, data: Path) -> str:
    """The line that says why nothing was written."""
    out = data.parent / "out" / data.name
    assert main(["apply", str(listed), "--data", str(data), "--out", str(out)]) == 2
    assert not [*data.parent.glob("out/*"), *data.parent.glob("out/.*")]
    printed = capsys.readouterr()
    assert not printed.out
    (line,) = printed.err.splitlines()
    return line


@pytest.mark.parametrize("odd", LINES, ids=named)
def test_lines_keep_all_bytes_but_those_of_listed_rows(odd: Lines, tmp_path: Path) -> None:
    data = tmp_path / odd.name
    data.write_bytes(odd.pack(odd.without([])))
    more = ("--id", odd.id, "--quote", odd.quote)
    out = apply(tmp_path, ids_file(tmp_path, odd.listed), data, *more)
    assert odd.unpack(out.read_bytes()) == odd.without(odd.listed)
    counts = read_json(out.with_name(f"{out.name}.receipt.json"))["rows"]
    assert (counts["read"], counts["on_the_list"]) == (len(odd.rows), len(odd.listed))
    cells = readers.read_file_columns(data, [odd.id], Dialect(quote=odd.quote != "none"))
    assert [name_of(cell) or "" for cell in cells.columns[odd.id]] == [*odd.rows]


@pytest.mark.parametrize(("name", "content", "table", "means"), LISTS, ids=range(len(LISTS)))
def test_a_list_means_what_it_says(
    name: str,
    content: bytes,
    table: bytes,
    means: Sequence[str] | str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    data, listed = tmp_path / "a.csv", tmp_path / name
    data.write_bytes(table)
    listed.write_bytes(content)
    if isinstance(means, str):
        assert means in refused(capsys, listed, data)
        return
    left = [row for row in table.splitlines(True) if row.decode().partition(",")[0] not in means]
    assert apply(tmp_path, listed, data).read_bytes() == b"".join(left)


@pytest.mark.parametrize("odd", FOLDERS, ids=named)
def test_a_folder_is_read_whole_or_refused(
    odd: Folder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for name, content in odd.files.items():
        (data / name).parent.mkdir(exist_ok=True)
        if content is None:
            (data / name).symlink_to("nothing")
        else:
            (data / name).write_bytes(content)
    listed = ids_file(tmp_path, ["2"])
    if isinstance(odd.left, str):
        assert odd.left in refused(capsys, listed, data)
        return
    out = apply(tmp_path, listed, data)
    files = [path for path in out.rglob("*") if path.is_file()]
    assert {str(path.relative_to(out)): path.read_bytes() for path in files} == odd.left


def test_what_another_command_has_written_meanwhile_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data, out = tmp_path / "a.csv", tmp_path / "out.csv"
    data.write_bytes(FIVE)
    write = rewriting.write_lines

    def slow(*args: Any) -> Any:
        out.write_text("of another command")
        out.with_name("out.csv.receipt.json").write_text("its receipt")
        return write(*args)

    monkeypatch.setattr(rewriting, "write_lines", slow)
    listed = ids_file(tmp_path, ["2"])
    assert main(["apply", str(listed), "--data", str(data), "--out", str(out)]) == 2
    assert "out.csv: exists already" in capsys.readouterr().err
    assert out.read_text() == "of another command"
    assert out.with_name("out.csv.receipt.json").read_text() == "its receipt"
