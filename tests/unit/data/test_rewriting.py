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
