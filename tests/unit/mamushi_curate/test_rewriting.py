"""A table written again: what was read and written is known by one opening, and whole or not."""

import gzip
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mamushi.io.files import sha256
from mamushi_curate.removal import Removal, Verdict
from mamushi_curate.rewriting import rewrite
from mamushi_curate.tables import readers
from mamushi_curate.tables.lines import Record


def digests(data: Path, out: Path, gone: set[str]) -> tuple[dict[str, str], dict[str, str]]:
    """What is known of the files that were read and written, before the result has its name."""
    seen = []

    def note(read: dict[str, str], written: dict[str, str]) -> None:
        assert not out.exists()
        seen.append((read, written))

    rewrite(data, out, Removal({name: {} for name in gone}), note=note)
    (pair,) = seen
    return pair


def test_what_was_read_and_written_is_known(tmp_path: Path) -> None:
    data, out = tmp_path / "data", tmp_path / "out"
    data.mkdir()
    for number in range(3):
        content = b"id,text\n" + b"".join(b"%d,x\n" % (number * 3 + at) for at in range(3))
        (data / f"{number}.csv.gz").write_bytes(gzip.compress(content) + b"\0" * 100)
    read, written = digests(data, out, {"4", "8"})
    assert read == {path.name: sha256(path) for path in data.iterdir()} and len(written) == 3
    assert written == {path.name: sha256(path) for path in out.iterdir()}
    assert readers.read_file_columns(data, ["id"]).digests == read
    one = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": ["1", "2"]}), one)
    read, written = digests(one, tmp_path / "b.parquet", {"1"})
    assert read == readers.read_file_columns(one, ["id"]).digests == {"a.parquet": sha256(one)}
    assert written == {"b.parquet": sha256(tmp_path / "b.parquet")}


class Meddling(Removal):
    """One during which something happens to the file that is read."""

    happens: Callable[[], object] = staticmethod(lambda: None)

    def verdict(self, record: Record) -> Verdict:
        if self.counts.read_rows == 0:
            type(self).happens()
        return super().verdict(record)


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
    seen: list[dict[str, str]] = []
    rewrite(data, out, Meddling({"1": {}}), note=lambda read, written: seen.append(read))
    assert seen == [{data.name: was}] and sha256(data) != was
    assert [*readers.read_file_columns(out, ["id"]).columns["id"]] == ["2"]


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
    with pytest.raises(Exception, match=r"has changed while|in footer|Tried reading"):
        rewrite(data, out, Meddling({"1": {}}))
    assert [*tmp_path.iterdir()] == [data]
