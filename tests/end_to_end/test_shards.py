"""The small grid's embeddings from shards: the same results, and only a lost shard again."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from mamushi.artifacts import paths
from tests.support.small_grid import CONFIG, DATASET, MODEL, contents
from tests.support.workflow import run

CELL = {"dataset": DATASET, "model": MODEL, "seed": "0"}
TABLE = paths.EMBEDDINGS.format(**CELL)
SCORES = paths.SCORES.format(**CELL, selector="lr_cos")


def cut(number: int) -> dict[str, Any]:
    return CONFIG | {"execution": CONFIG["execution"] | {"shards": number, "batch_tokens": 128}}


@pytest.mark.slow
def test_results_are_the_same_from_any_number_of_shards(tmp_path: Path) -> None:
    whole = tmp_path / "1"
    run(SCORES, directory=whole, config=cut(1))
    for number in (3, 8):
        parts = tmp_path / str(number)
        shutil.copytree(whole / "results", parts / "results")
        for path in (TABLE, SCORES):
            (parts / path).unlink()
        shards = [
            paths.SHARD.format(**CELL, table="embeddings", scatteritem=f"{i + 1}-of-{number}")
            for i in range(number)
        ]
        run(*shards, directory=parts, config=cut(number))
        (parts / shards[1]).unlink()
        said = run(SCORES, directory=parts, config=cut(number)).stdout
        assert said.count("rule embed_shard:") == said.count("rule embed:") == 1
        assert (parts / TABLE).read_bytes() == (whole / TABLE).read_bytes()
        assert contents(parts / "results") == contents(whole / "results")
