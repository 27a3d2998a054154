"""The stage `evaluate`: the same perplexity, whatever number of jobs share it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mamushi.artifacts import pieces, schemas
from mamushi.artifacts.tables import EVALUATION, read_table
from mamushi.cli import main
from mamushi.lm import batches
from tests.support.stage_files import EXECUTION, FILES, write_base


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_base(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*more: str) -> int:
    chosen = {"precision": "fp32", "training": None, "evaluation": {"max_length": 16}}
    read = [f"--{key}={name}" for key, name in FILES.items() if key != "trained"]
    # So small that a few texts are several batches, and fewer than the most shards.
    how = f"--execution={json.dumps(EXECUTION | {'batch_tokens': 12})}"
    return main(["evaluate", *read, how, f"--settings={json.dumps(chosen)}", *more])


def measured(number: int) -> list[bytes]:
    """Both tables, from so many shards: from none, in one job, for 0."""
    names = [f"{i + 1}-of-{number}" for i in range(number)]
    for name in names:
        # A rule without the other table hands over nothing in its place.
        assert run(f"--nll={name}.parquet", f"--shard={name}", "--out") == 0
    paths = [Path(f"{name}-{number}.parquet") for name in ("out", "nll")]
    parts = sorted(f"{name}.parquet" for name in names)
    assert run(f"--out={paths[0]}", f"--nll={paths[1]}", "--shards", *parts) == 0
    return [path.read_bytes() for path in paths]


@pytest.mark.parametrize("block", [3, pieces.BLOCK])
def test_shards_together_are_what_one_job_writes(
    made: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(pieces, "BLOCK", block)
    monkeypatch.setattr(batches, "BLOCK", block)
    whole = measured(0)
    for number in (1, 3, 11):
        assert measured(number) == whole
    rows = [
        set(read_table(f"{name}-of-3.parquet", schemas.SHARD)["row"].to_pylist())
        for name in (1, 2, 3)
    ]
    assert all(rows)
    sections = read_table(made / FILES["examples"], schemas.EXAMPLES)["section"].to_pylist()
    held_out = range(sections.count(EVALUATION))
    assert sorted(row for part in rows for row in part) == [*held_out]


def test_a_perplexity_without_some_texts_is_refused(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    measured(3)
    there = ["1-of-3.parquet", "3-of-3.parquet"]
    assert run("--out=less", "--nll=less-nll", "--shards", *there) == 2
    assert "texts are in none of the 2 shards" in capsys.readouterr().err
    assert not Path("less").exists()
