"""The table without what is on a list: nothing else of it changes, and a receipt says what did."""

import json
import random
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.removal_files import command
from tests.support.workflow import output_of

GONE = ["3", "5", "10"]
"""On every list here; 10 is the last row."""


def plain_list(folder: Path, ids: list[str] = GONE) -> Path:
    path = folder / "ids.txt"
    path.write_text("\n".join(ids), encoding="utf-8")
    return path


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
        "import mamushi_curate.rewriting, mamushi_curate.removal\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "command('apply', *sys.argv[1:])\n"
        "grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before\n"
        "print(grown, file=sys.stderr)\n"
    )
    words = [ids, "--data", data, "--out", tmp_path / f"x{kind}"]
    grown = int(output_of(sys.executable, "-c", script, *words).splitlines()[-1]) / 1024
    size = data.stat().st_size / 2**20
    assert size > 12 and grown < size / 2, (size, grown)
