"""The table without what is on a list: nothing else of it changes, and a receipt says what did."""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mamushi.errors import UserError
from mamushi.io.files import read_json
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


def plain_list(folder: Path, ids: list[str] = GONE) -> Path:
    path = folder / "ids.txt"
    path.write_text("\n".join(ids), encoding="utf-8")
    return path


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
        "import mamushi_curate.rewriting, mamushi_curate.commands._removal_list\n"
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
