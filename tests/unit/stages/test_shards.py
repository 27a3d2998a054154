"""Stages whose texts several jobs share: their shards together are what one job writes."""

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mamushi.cli import main
from mamushi.io import schemas, shards
from mamushi.io.tables import INFERENCE, read_table
from mamushi.lm import batches
from tests.support.stage_files import (
    EXECUTION,
    FILES,
    command,
    refusal,
    texts_of,
    write_base,
)

EMBEDDING = {"pooling": "mean", "skip_bos": True, "max_length": 16, "precision": "fp32"}
SETTINGS: dict[str, dict[str, Any]] = {
    "embed": {"embedding": EMBEDDING | {"layer": -1}, "training": None},
    "embed-layers": {"embedding": EMBEDDING, "training": None, "depths": [0.1, 0.5]},
}
SMALL = json.dumps(EXECUTION | {"batch_tokens": 24})
"""So small that a few texts are several batches, and fewer than the most shards."""


@pytest.fixture(autouse=True)
def files(tmp_path: Path) -> None:
    """What the stages read, in the test's folder."""
    write_base(tmp_path)


def written(stage: str, out: str, **changes: Any) -> list[str]:
    """The command that embeds, all texts or a ``shard``."""
    names = {"shard": changes.pop("shard", None), "out": out}
    line = command(stage, SETTINGS[stage] | changes, **texts_of(Path()), **names)
    return [word for word in line if "--execution" not in word] + [f"--execution={SMALL}"]


def joined(stage: str, out: str, parts: list[str]) -> list[str]:
    """The command that puts shards together."""
    table = {"table": "layers" if "layers" in stage else "embeddings"}
    examples = {"examples": Path("examples.parquet"), "shards": parts}
    return command("join-shards", table, **examples, out=out)


def numbered(stage: str, number: int) -> list[str]:
    """The names of so many shards, in the order in which Snakemake has them: 10 before 2."""
    names = [f"{i + 1}-of-{number}" for i in range(number)]
    for name in names:
        assert main(written(stage, f"{name}.parquet", shard=name)) == 0
    return sorted(f"{name}.parquet" for name in names)


@pytest.mark.parametrize(
    ("stage", "block", "numbers"),
    [
        ("embed", 8, (1, 3, 11)),
        ("embed", shards.BLOCK, (3,)),
        ("embed-layers", 8, (3,)),
    ],
)
def test_shards_together_are_what_one_job_writes(
    stage: str, block: int, numbers: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "BLOCK", block)
    monkeypatch.setattr(batches, "BLOCK", block)
    assert main(written(stage, "whole")) == 0
    for number in numbers:
        assert main(joined(stage, "joined", numbered(stage, number))) == 0
        assert Path("joined").read_bytes() == Path("whole").read_bytes()
    parts = [read_table(f"{i}-of-3.parquet", schemas.SHARD)["row"].to_pylist() for i in (1, 2, 3)]
    sections = read_table(FILES["examples"], schemas.EXAMPLES)["section"].to_pylist()
    assert all(parts) and sorted(itertools.chain(*parts)) == [*range(sections.count(INFERENCE))]


def test_beside_the_first_process_nothing_is_written(tmp_path: Path) -> None:
    rest = iter([(np.arange(2), {"embedding": np.zeros((2, 4), np.float16)})])
    out, texts = tmp_path / "out", {"id": pa.array(["a", "b"]), "domain": pa.array(["x", "x"])}
    shards.write_pieces(out, schemas.EMBEDDINGS, rest, texts, {}, beside=True)
    # All processes compute each piece together.
    assert not list(rest) and not out.exists()


def test_what_is_not_the_tables_shards_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    stage = "embed"
    parts = numbered(stage, 3)
    line = refusal(joined(stage, "again", parts[:2]), capsys)
    assert "texts are in none of the 2 shards" in line
    other = EMBEDDING | {"layer": -1, "pooling": "last"}
    assert main(written(stage, parts[2], shard="3-of-3", embedding=other)) == 0
    line = refusal(joined(stage, "again", parts), capsys)
    assert "is a shard that was made with other settings" in line
    assert not Path("again").exists()
