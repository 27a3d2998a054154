"""The table without what is on a list: nothing else of it changes, and a receipt says what did."""

from __future__ import annotations

import gzip
import io
import json
import random
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mamushi.data import readers
from mamushi.errors import UserError
from mamushi.io.files import read_json, sha256
from tests.support.removal_files import command

BOM = b"\xef\xbb\xbf"
GONE = ["3", "5", "10"]
"""On every list here; 10 is the last row."""


def csv_rows(delimiter: str = ",") -> tuple[bytes, list[bytes]]:
    """Header with a BOM, and ten rows of 25 columns: quotes of every kind, two line ends, nulls, an
    embedded line end, what is no UTF-8, and no line end after the last row."""
    d = delimiter.encode()
    header = BOM + d.join(b'"column %d"' % i for i in range(23)) + d + b"id" + d + b"text\r\n"
    odd = [b'"a""b"', b"", b'"line\none\r\ntwo"', b"'x'", b'"' + d + b'"', b"  pad ", b"\xff\xfe"]
    rows = []
    for row in range(1, 11):
        cells = [odd[(row + i) % len(odd)] for i in range(23)]
        rows.append(d.join([*cells, b'"%d"' % row if row % 2 else b"%d" % row, b"t"]))
    ends = [b"\r\n", b"\n"] * 4 + [b"\r\n\r\n", b""]
    return header, [row + end for row, end in zip(rows, ends, strict=True)]


def json_rows() -> list[bytes]:
    rows = []
    for row in range(1, 11):
        nested = {f"c{i}": [None, {"a": [i, None]}, "é\\u00e9", 1.50][i % 4] for i in range(23)}
        name = row if row % 2 else str(row)
        text = json.dumps({"id": name, **nested, "text": "x"}, indent=None, ensure_ascii=row % 2)
        rows.append(text.replace("1.5", "1.50").replace(", ", " ,  ").encode() + b"\r\n"[row % 2 :])
    rows[0] = BOM + rows[0]
    rows[4] += b"\n"
    rows[9] = rows[9].rstrip()
    return rows


def staying(kind: str, rows: list[bytes]) -> bytes:
    kept = [row for number, row in enumerate(rows, 1) if str(number) not in GONE]
    if kind == ".jsonl":
        # A blank line after a row that goes is no part of it.
        kept.insert(3, b"\n")
    return b"".join(kept)


def plain_list(folder: Path, ids: list[str] = GONE) -> Path:
    path = folder / "ids.txt"
    path.write_text("\n".join(ids), encoding="utf-8")
    return path


PACK: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".zst": lambda content: pa.Codec("zstd").compress(content, asbytes=True),
    ".zip": lambda content: zipped("data", content),
}
UNPACK: dict[str, Callable[[Path], bytes]] = {
    "": Path.read_bytes,
    ".gz": lambda path: gzip.decompress(path.read_bytes()),
    ".zst": lambda path: pa.input_stream(str(path), compression="zstd").read(),
}


def zipped(name: str, content: bytes) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr(name, content)
    return sink.getvalue()


def lines_of(kind: str) -> tuple[bytes, list[bytes]]:
    if kind == ".jsonl":
        return b"", json_rows()
    return csv_rows("\t" if kind == ".tsv" else ",")


@pytest.mark.parametrize("packing", PACK)
@pytest.mark.parametrize("kind", [".csv", ".tsv", ".jsonl"])
def test_lines_that_stay_keep_their_bytes(tmp_path: Path, kind: str, packing: str) -> None:
    header, rows = lines_of(kind)
    ending = kind + packing.replace(".zip", "")
    data, out = tmp_path / f"data{kind}{packing}", tmp_path / f"clean{ending}"
    data.write_bytes(PACK[packing](header + b"".join(rows)))
    command("apply", plain_list(tmp_path), "--data", data, "--out", out)
    assert UNPACK[ending.removeprefix(kind)](out) == header + staying(kind, rows)
    receipt = read_json(tmp_path / f"clean{ending}.receipt.json")
    assert receipt["rows"] == {"read": 10, "on_the_list": 3, "others": 7, "without_an_id": 0}
    assert receipt["data"]["sha256"] == sha256(data)
    assert receipt["written"] == {"path": str(out), "sha256": sha256(out)}
    assert receipt["list"]["sha256"] == sha256(tmp_path / "ids.txt")
    assert receipt["id"] == "id" and receipt["ids"]["not_found"] == []
    # The same again gives the same bytes.
    again = tmp_path / f"again{ending}"
    command("apply", plain_list(tmp_path), "--data", data, "--out", again)
    assert again.read_bytes() == out.read_bytes()


def test_a_folder_of_shards_stays_one(tmp_path: Path) -> None:
    header, rows = csv_rows()
    data, out = tmp_path / "data", tmp_path / "x"
    data.mkdir()
    parts = {"a.csv.gz": rows[:4], "b.csv.gz": rows[4:8], "c.csv.gz": rows[8:]}
    for name, some in parts.items():
        (data / name).write_bytes(gzip.compress(header + b"".join(some)))
    (data / "README.md").write_text("about it")
    command("apply", plain_list(tmp_path), "--data", data, "--out", out)
    for name, some in parts.items():
        wanted = [row for row in some if str(rows.index(row) + 1) not in GONE]
        assert gzip.decompress((out / name).read_bytes()) == header + b"".join(wanted)
    assert (out / "README.md").read_text() == "about it"
    receipt = read_json(tmp_path / "x.receipt.json")
    assert set(receipt["data"]["sha256"]) == set(parts)
    with pytest.raises(UserError, match="x: exists already"):
        command("apply", plain_list(tmp_path, ["3"]), "--data", data, "--out", out)
    (data / "d.parquet").write_bytes(b"")
    with pytest.raises(UserError, match="what is not read with it"):
        command("apply", plain_list(tmp_path), "--data", data, "--out", tmp_path / "y")
    assert not list(tmp_path.glob("*.part")) and not list(tmp_path.glob(".*part"))


def test_a_saved_dataset_opens_again(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    rows = {"id": [str(i) for i in range(1, 11)], "meta": [{"a": [i]} for i in range(10)]}
    whole = datasets.Dataset.from_dict(rows)
    whole = whole.cast_column("id", datasets.Value("large_string"))
    whole.save_to_disk(tmp_path / "data", num_shards=3)
    out = tmp_path / "x"
    command("apply", plain_list(tmp_path), "--data", tmp_path / "data", "--out", out)
    found = datasets.load_from_disk(out)
    assert found._fingerprint != datasets.load_from_disk(tmp_path / "data")._fingerprint
    assert found.to_dict() == whole.filter(lambda row: row["id"] not in GONE).to_dict()
    assert found.features == whole.features
    assert len(list(out.glob("*.arrow"))) == 3


def test_rows_of_a_saved_dataset_are_numbered_as_they_are_ranked(tmp_path: Path) -> None:
    """As its state lists the shards, whatever their names sort to."""
    datasets = pytest.importorskip("datasets")
    data = tmp_path / "data"
    rows = [f"text {i}" for i in range(6)]
    datasets.Dataset.from_dict({"text": rows}).save_to_disk(data, num_shards=2)
    state = json.loads((data / "state.json").read_text())
    state["_data_files"].reverse()
    (data / "state.json").write_text(json.dumps(state))
    ranked = readers.read_file_columns(data, ["text"]).columns["text"]
    (tmp_path / "list.txt").write_text("2\n")
    command("apply", tmp_path / "list.txt", "--rows", "--data", data, "--out", tmp_path / "x")
    kept = readers.read_file_columns(tmp_path / "x", ["text"]).columns["text"]
    assert kept == [text for place, text in enumerate(ranked, 1) if place != 2]


@pytest.mark.parametrize("kind", [".jsonl", ".parquet"])
def test_memory_does_not_grow_with_the_file(tmp_path: Path, kind: str) -> None:
    """A file of 25 MB of incompressible text, a chunk at a time."""
    ids = plain_list(tmp_path)
    data = tmp_path / f"data{kind}"
    source = random.Random(0)
    texts = [source.randbytes(32_000).hex() for _ in range(50)]
    if kind == ".parquet":
        with pq.ParquetWriter(data, pa.schema([("id", pa.string()), ("text", pa.string())])) as out:
            for block in range(8):
                names = [str(block * 50 + i) for i in range(50)]
                out.write_table(pa.table({"id": names, "text": texts}))
    else:
        with data.open("w") as lines:
            lines.writelines(
                json.dumps({"id": i, "text": texts[i % 50]}) + "\n" for i in range(400)
            )
    script = (
        "import sys, resource\n"
        "from tests.support.removal_files import command\n"
        "import mamushi.data.rewriting, mamushi.commands._removal_list\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "command('apply', *sys.argv[1:])\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    words = [ids, "--data", data, "--out", tmp_path / f"x{kind}"]
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, words)], capture_output=True, text=True, check=True
    )
    grown = int(done.stdout.splitlines()[-1]) / 1024
    size = data.stat().st_size / 2**20
    assert size > 12 and grown < size / 2, (size, grown)
