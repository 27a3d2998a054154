"""A table written again: what was read and written is known by one opening, and whole or not."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mamushi.data import readers, rewriting
from mamushi.data.matching import RowRemoval
from mamushi.data.rewriting import Rewritten, rewrite
from mamushi.errors import UserError
from mamushi.io.files import sha256

BOM = b"\xef\xbb\xbf"


def without(data: Path, ids: list[str], *, column: str = "id", quote: bool = True) -> Path:
    """Return where ``data`` was written to without the rows of these ids."""
    out = data.with_name(f"clean-{data.name}")
    rewrite(data, out, RowRemoval(ids, column), quote=quote)
    return out


TWO_MARKS = [BOM + BOM + b"id,text\r\n", b"1,a\r\n", b"2,b\r\n", b"3,c"]
LONG = [b'{"id": 1, "x": %s}\n' % (b"9" * 5000), b'{"id": 2, "x": 1e999}\n']


@pytest.mark.parametrize(
    ("name", "quote", "lines", "gone"),
    [
        # Without quotes every line is a row.
        ("a.tsv", False, [b"id\tbody\n", b'r1\t"We\n', b"r2\tsaid\n", b'r3\tate."\n'], "r1"),
        ("a.csv", False, [b"id,body\n", b'r1,5" disk\n', b'r2,a "b" c\n', b'r3,"\n'], "r2"),
        ("a.csv", True, [b"id,body\n", b'r1,5" disk\n', b'r2,a "b" c\n', b'r3,"\n"\n'], "r2"),
        ("a.csv", True, TWO_MARKS, "3"),
        ("a.csv", True, [b"id,text\r", b"1,a\r", b"2,b\r"], "1"),
        ("a.jsonl", True, [BOM + BOM + b'{"id": 1}\n', b'{"id": 2}\n'], "2"),
        ("a.jsonl", True, LONG, "2"),
        ("a.jsonl", True, [b'{"id": 1, "x": "\\ud800"}\n', b'{"id": 2}\n'], "2"),
    ],
)
def test_the_rows_that_stay_keep_their_bytes(
    tmp_path: Path, name: str, quote: bool, lines: list[bytes], gone: str
) -> None:
    data = tmp_path / name
    data.write_bytes(b"".join(lines))
    left = [line for line in lines if gone.encode() not in line.split(b'"x"')[0]]
    assert len(left) == len(lines) - 1
    assert without(data, [gone], quote=quote).read_bytes() == b"".join(left)


def test_files_that_were_joined_have_marks_in_the_middle(tmp_path: Path) -> None:
    """Of byte-order, in front of a row whose id they are no part of."""
    data = tmp_path / "a.csv"
    data.write_bytes(BOM + b"id,text\n1,a\n" + BOM + b'"2",b\n3,c\n')
    assert readers.read_file_columns(data, ["id"]).columns == {"id": ["1", "2", "3"]}
    assert without(data, ["2"]).read_bytes() == BOM + b"id,text\n1,a\n3,c\n"
    lines = tmp_path / "a.jsonl"
    lines.write_bytes(b'{"id": 1}\n' + BOM + b'{"id": 2}\n' + BOM + b"\n")
    assert without(lines, ["2"]).read_bytes() == b'{"id": 1}\n' + BOM + b"\n"


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("1.0", "1"),
        ("1e3", "1000"),
        ("9007199254740993", "9007199254740993"),
        ("7" * 5000, "7" * 5000),
        ("1e300", str(int(1e300))),
        ("NaN", None),
        ("1e99999999999999999999", None),
    ],
)
def test_a_number_names_the_row_that_it_is_written_in(
    tmp_path: Path, written: str, name: str | None
) -> None:
    data = tmp_path / "a.jsonl"
    data.write_text(f'{{"id": {written}, "x": 1}}\n{{"id": 2}}\n')
    cell = readers.read_file_columns(data, ["id"]).columns["id"][0]
    assert readers.name_of(cell) == name


def test_what_was_read_and_written_is_returned(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for number in range(3):
        content = b"id,text\n" + b"".join(b"%d,x\n" % (number * 3 + at) for at in range(3))
        (data / f"{number}.csv.gz").write_bytes(gzip.compress(content) + b"\0" * 100)
    seen = []

    def record(done: Rewritten) -> None:
        assert not (tmp_path / "out").exists()
        seen.append(done)

    done = rewrite(data, tmp_path / "out", RowRemoval(["4", "8"], "id"), record=record)
    assert seen == [done] and (done.rows_read, done.rows_written) == (9, 7)
    assert done.read == {path.name: sha256(path) for path in data.iterdir()}
    assert done.written == {path.name: sha256(path) for path in (tmp_path / "out").iterdir()}
    assert readers.read_file_columns(data, ["id"]).digests == done.read
    one = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": ["1", "2"]}), one)
    done = rewrite(one, tmp_path / "b.parquet", RowRemoval(["1"], "id"))
    assert done.read == readers.read_file_columns(one, ["id"]).digests == {"a.parquet": sha256(one)}
    assert done.written == {"b.parquet": sha256(tmp_path / "b.parquet")}


class Meddling(RowRemoval):
    """One during which something happens to the file that is read."""

    happens: Callable[[], object] = staticmethod(lambda: None)

    def of(self, cells: Any, place: object) -> set[int] | None:
        if self.read == 0:
            type(self).happens()
        return super().of(cells, place)


WRITE: dict[str, Callable[[Path, list[str]], object]] = {
    ".csv": lambda path, ids: path.write_text("id\n" + "".join(f"{one}\n" for one in ids)),
    ".jsonl.gz": lambda path, ids: path.write_bytes(
        gzip.compress("".join(f'{{"id": "{one}"}}\n' for one in ids).encode())
    ),
    ".csv.zip": lambda path, ids: zipped(path, "id\n" + "".join(f"{one}\n" for one in ids)),
    ".parquet": lambda path, ids: pq.write_table(pa.table({"id": ids}), path),
    ".arrow": lambda path, ids: stream(path, pa.table({"id": ids})),
}


def zipped(path: Path, content: str) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.csv", content)


def stream(path: Path, table: pa.Table) -> None:
    with pa.ipc.new_stream(str(path), table.schema) as writer:
        writer.write_table(table)


@pytest.mark.parametrize("ending", WRITE)
def test_a_file_that_is_replaced_while_it_is_read_is_that_which_was_opened(
    tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, other = tmp_path / f"data{ending}", tmp_path / f"other{ending}"
    WRITE[ending](data, ["1", "2"])
    WRITE[ending](other, ["8", "1", "9"])
    was = sha256(data)
    monkeypatch.setattr(Meddling, "happens", lambda: os.replace(other, data))
    out = tmp_path / f"out{ending.removesuffix('.zip')}"
    done = rewrite(data, out, Meddling(["1"], "id"))
    assert done.read == {data.name: was} and sha256(data) != was
    assert readers.read_file_columns(out, ["id"]).columns == {"id": ["2"]}


@pytest.mark.parametrize("ending", WRITE)
def test_a_file_that_is_written_while_it_is_read_is_refused(
    tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, out = tmp_path / f"data{ending}", tmp_path / f"out{ending.removesuffix('.zip')}"
    WRITE[ending](data, ["1", "2"])

    def write() -> None:
        with data.open("ab") as file:
            file.write(b"\0" if ending.endswith("gz") else b"more\n")

    monkeypatch.setattr(Meddling, "happens", write)
    with pytest.raises(
        UserError, match=r"has changed while it was read; run the same|damaged or not"
    ):
        rewrite(data, out, Meddling(["1"], "id"))
    assert [*tmp_path.iterdir()] == [data]


@pytest.mark.parametrize("ending", WRITE)
def test_a_result_with_other_rows_is_not_kept(
    tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a writer that loses one without a word."""
    data, out = tmp_path / f"data{ending}", tmp_path / f"out{ending.removesuffix('.zip')}"
    WRITE[ending](data, ["1", "2", "3"])
    whole = rewriting._written
    monkeypatch.setattr(rewriting, "_written", lambda *of: (whole(*of)[0] - 1, "digest"))
    with pytest.raises(RuntimeError, match="3 rows were read and 1 go, but 1 were written"):
        rewrite(data, out, RowRemoval(["1"], "id"))
    assert [*tmp_path.iterdir()] == [data]


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    """Three files, of which a process that wants ``request`` 1 wrote the first ones until it was
    killed."""
    data = tmp_path / "data"
    data.mkdir()
    for name, ids in {"a": "12", "b": "34", "c": "5"}.items():
        (data / f"{name}.csv").write_text("\n".join(["id", *ids, ""]))
    program = (
        "import os, pathlib\n"
        "from mamushi.data import rewriting\n"
        "from mamushi.data.matching import RowRemoval\n"
        "class Killed(RowRemoval):\n"
        "    def takes(self, value, place):\n"
        "        return os.kill(os.getpid(), 9) if value == '5' else super().takes(value, place)\n"
        "for request in (2, 1):\n"
        "    if not os.fork():\n"
        "        data, out = map(pathlib.Path, ('data', 'out'))\n"
        "        rewriting.rewrite(data, out, Killed(['1', '4'], 'id'), request=request)\n"
        "    os.wait()\n"
    )
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
    assert len([*tmp_path.glob(".out.*.part/b.csv")]) == 2 and not (tmp_path / "out").exists()
    return data


def again(
    data: Path, monkeypatch: pytest.MonkeyPatch, ids: tuple[str, ...] = ("1", "4")
) -> tuple[RowRemoval, list[str]]:
    """Ask for the folder again; return what was counted, and which files were written anew."""
    whole, anew, removal = rewriting._written, list[str](), RowRemoval(ids, "id")

    def written(path: Path, *rest: Any) -> tuple[int, str]:
        anew.append(path.name)
        return whole(path, *rest)

    monkeypatch.setattr(rewriting, "_written", written)
    rewrite(data, data.with_name("out"), removal, request=1)
    assert {*data.parent.iterdir()} == {data, data.with_name("out")}
    return removal, anew


def test_a_folder_goes_on_where_a_process_was_killed(
    parts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    removal, anew = again(parts, monkeypatch)
    assert anew == ["c.csv"]
    assert (removal.read, removal.removed, removal.seen_ids) == (5, 2, {"1", "4"})
    texts = {path.name: path.read_text() for path in parts.with_name("out").iterdir()}
    assert texts == {"a.csv": "id\n2\n", "b.csv": "id\n3\n", "c.csv": "id\n5\n"}


def test_two_equal_commands_are_not_at_work_at_once(parts: Path) -> None:
    out = parts.with_name("elsewhere")
    with (
        rewriting.resumed_folder(out, 1) as part,
        pytest.raises(UserError, match="the same command writes it now; wait until that has ended"),
        rewriting.resumed_folder(out, 1),
    ):
        pass
    assert [*out.iterdir()] == [] and not part.exists()


@pytest.mark.parametrize("change", ["data", "written", "log"])
def test_what_is_not_as_it_was_is_written_again(
    parts: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    # Of both requests.
    for part in parts.parent.glob(".out.*.part"):
        where = {"data": parts, "written": part, "log": part / rewriting.DONE}[change]
        where.joinpath("b.csv.json" if change == "log" else "b.csv").write_text("id\n4\n8\n")
    removal, anew = again(parts, monkeypatch)
    assert anew == ["b.csv", "c.csv"] and removal.read == 5
    kept = "8" if change == "data" else "3"
    assert (parts.with_name("out") / "b.csv").read_text() == f"id\n{kept}\n"


def test_an_id_in_two_files_is_told_though_one_was_written_before(
    parts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (parts / "c.csv").write_text("id\n1\n")
    with pytest.raises(UserError, match="several rows have the id '1'"):
        again(parts, monkeypatch)
    assert not parts.with_name("out").exists()


def test_what_lies_beside_a_table_is_copied(tmp_path: Path) -> None:
    data, out = tmp_path / "data", tmp_path / "out"
    (data / "images").mkdir(parents=True)
    (data / "a.csv").write_text("id\n1\n2\n")
    for name in ("README.md", "LICENSE", "images/1.png", ".gitattributes", "_SUCCESS"):
        (data / name).write_text("x")
    rewrite(data, out, RowRemoval(["1"], "id"))
    left = sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())
    assert left == ["LICENSE", "README.md", "a.csv", "images/1.png"]
