"""Shards of tables in the graph: how many there are is no part of what is made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mamushi.io import paths
from tests.support import contract_grid
from tests.support.contract_grid import changed
from tests.support.dry_runs import Snakemake

CELL = {"dataset": "mine", "model": "tiny", "seed": "0"}
BETA0 = paths.PERPLEXITY.format(**CELL, arm="beta0")
TARGETS = [path.format(**CELL) for path in (paths.EMBEDDINGS, paths.LAYERS)]
CUT = changed("execution.shards", 3)
ANEW = changed("embedding.pooling", "last")
RULES = ("embed", "embed_layers")
SHARDED = {rule: 1 for rule in RULES} | {f"{rule}_shard": 3 for rule in RULES}


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory, snakemake: Snakemake) -> Path:
    """A folder in which these tables were made of three shards each."""
    folder = tmp_path_factory.mktemp("cut")
    contract_grid.make(folder)
    done = snakemake.finish(folder, targets=TARGETS, change=CUT)
    assert done.items() >= SHARDED.items()
    for shard in (folder / "results/runs").rglob("shards/*/*"):
        shard.unlink()
    return folder


@pytest.mark.parametrize("number", [1, 3, 8])
def test_another_number_of_shards_makes_nothing_again(
    snakemake: Snakemake, cut: Path, number: int
) -> None:
    change = changed("execution.shards", number)
    assert snakemake.would_run(cut, targets=TARGETS, change=change) == {}


def test_what_is_made_anew_has_the_number_that_is_asked_for(
    snakemake: Snakemake, cut: Path
) -> None:
    def needed(number: int) -> dict[str, int]:
        change = {**changed("execution.shards", number), **ANEW}
        return snakemake.would_run(cut, targets=TARGETS, change=change)

    assert needed(3) == SHARDED
    assert needed(1) == dict.fromkeys(RULES, 1)
    assert needed(8) == {**SHARDED, **{f"{rule}_shard": 8 for rule in RULES}}


def test_a_shard_that_is_there_is_not_made_again(snakemake: Snakemake, tmp_path: Path) -> None:
    contract_grid.make(tmp_path)
    shard = paths.SHARD.format(**CELL, table="embeddings", scatteritem="{item}")
    there = [shard.format(item=item) for item in ("1-of-3", "3-of-3")]
    snakemake.finish(tmp_path, targets=there, change=CUT)
    runs: list[Any] = snakemake.look(tmp_path, targets=TARGETS[:1], change=CUT)["runs"]
    found = {rule: wildcards.get("scatteritem") for rule, wildcards in runs}
    assert found == {"embed": None, "embed_shard": "2-of-3"} and len(runs) == 2


def test_memory_and_time_follow_the_texts_once_they_are_counted(
    snakemake: Snakemake, tmp_path: Path
) -> None:
    contract_grid.make(tmp_path)
    scores = paths.SCORES.format(**CELL, selector="mamushi")

    def asked(texts: int, shards: int) -> dict[str, dict[str, int]]:
        card = tmp_path / paths.DATA_CARD.format(dataset=CELL["dataset"])
        card.parent.mkdir(parents=True, exist_ok=True)
        each = {"forget": texts // 2, "retain": texts // 2}
        sections = {"inference": each, "evaluation": each}
        card.write_text(json.dumps({"counts": {"sections": sections}}), encoding="utf-8")
        change = changed("execution.shards", shards)
        found: dict[str, dict[str, int]] = snakemake.look(
            tmp_path, targets=[scores, BETA0], change=change
        )["resources"]
        return found

    few, many, cut = asked(2000, 1), asked(2_000_000, 1), asked(2_000_000, 8)
    for rule in ("embed", "score"):
        for name in ("mem_mb", "runtime"):
            assert many[rule][name] > 1.4 * few[rule][name], (rule, name)
    assert many["evaluate"]["runtime"] > 1.4 * few["evaluate"]["runtime"]
    assert cut["embed_shard"]["runtime"] < many["embed"]["runtime"] / 2
