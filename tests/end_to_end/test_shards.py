"""The small grid's embeddings and a perplexity from shards: the same results, and only a lost shard
again."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from mamushi.artifacts import paths
from tests.support.small_grid import CONFIG, DATASET, MODEL, contents
from tests.support.workflow import run

CELL = {"dataset": DATASET, "model": MODEL, "seed": "0"}
BETA0 = {**CELL, "arm": "beta0"}
TARGETS = [
    paths.SCORES.format(**CELL, selector="lr_cos"),
    paths.PERPLEXITY.format(**BETA0),
]
TABLES = [paths.EMBEDDINGS.format(**CELL), paths.NLL.format(**BETA0)]
RULES = {"embeddings": "embed", "beta0": "evaluate"}
"""Of the shards of each table, by what their folder is called."""


def cut(number: int) -> dict[str, Any]:
    return CONFIG | {"execution": CONFIG["execution"] | {"shards": number, "batch_tokens": 128}}


@pytest.mark.slow
def test_results_are_the_same_from_any_number_of_shards(tmp_path: Path) -> None:
    whole = tmp_path / "1"
    run(*TARGETS, directory=whole, config=cut(1))
    for number in (3, 8):
        parts = tmp_path / str(number)
        shutil.copytree(whole / "results", parts / "results")
        for path in (*TARGETS, *TABLES):
            (parts / path).unlink()
        shards = [
            paths.SHARD.format(**CELL, table=table, scatteritem=f"{i + 1}-of-{number}")
            for table in RULES
            for i in range(number)
        ]
        run(*shards, directory=parts, config=cut(number))
        for lost in (1, number + 1):
            (parts / shards[lost]).unlink()
        said = run(*TARGETS, directory=parts, config=cut(number)).stdout
        for rule in RULES.values():
            assert said.count(f"rule {rule}_shard:") == said.count(f"rule {rule}:") == 1
        for path in TABLES:
            assert (parts / path).read_bytes() == (whole / path).read_bytes()
        assert contents(parts / "results") == contents(whole / "results")
