"""Shards of tables in the graph: how many there are is no part of what is made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mamushi.io import paths
from mamushi.io.files import write_json
from tests.support import contract_grid
from tests.support.contract_grid import changed
from tests.support.dry_runs import Snakemake

CELL = {"dataset": "mine", "model": "tiny", "seed": "0"}
BETA0 = paths.PERPLEXITY.format(**CELL, arm="beta0")
TARGETS = [path.format(**CELL) for path in (paths.EMBEDDINGS, paths.LAYERS)]
WHOLE = {"embed": 1, "embed_layers": 1}


def cut_in(number: int) -> dict[str, int]:
    """The jobs that make both tables of so many shards."""
    joins = {"join_embeddings": 1, "join_layers": 1}
    return {"embed_shard": number, "embed_layers_shard": number, **joins}


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory, snakemake: Snakemake) -> Path:
    """A folder in which these tables were made of three shards each, which were then deleted."""
    folder = tmp_path_factory.mktemp("cut")
    contract_grid.make(folder)
    change = changed("execution.shards", 3)
    done = snakemake.finish(folder, targets=TARGETS, change=change)
    assert done.items() >= cut_in(3).items() and not done.keys() & WHOLE.keys()
    for shard in (folder / "results/runs").rglob("shards/*/*"):
        shard.unlink()
    return folder


@pytest.mark.parametrize(("number", "jobs"), [(3, {}), (1, WHOLE), (8, cut_in(8))])
def test_another_number_of_shards_embeds_again(
    snakemake: Snakemake, cut: Path, number: int, jobs: dict[str, int]
) -> None:
    change = changed("execution.shards", number)
    assert snakemake.would_run(cut, targets=TARGETS, change=change) == jobs


def test_a_shard_that_is_there_is_not_made_again(snakemake: Snakemake, tmp_path: Path) -> None:
    contract_grid.make(tmp_path)
    change = changed("execution.shards", 3)
    shard = paths.SHARD.format(**CELL, table="embeddings", scatteritem="{item}")
    done = [shard.format(item=item) for item in ("1-of-3", "3-of-3")]
    snakemake.finish(tmp_path, targets=done, change=change)
    runs: list[Any] = snakemake.look(tmp_path, targets=TARGETS[:1], change=change)["runs"]
    jobs = {rule: wildcards.get("scatteritem") for rule, wildcards in runs}
    assert jobs == {"join_embeddings": None, "embed_shard": "2-of-3"} and len(runs) == 2


def test_memory_and_time_follow_the_texts_once_they_are_counted(
    snakemake: Snakemake, tmp_path: Path
) -> None:
    contract_grid.make(tmp_path)
    scores = paths.SCORES.format(**CELL, selector="mamushi")

    def asked(texts: int, shards: int) -> dict[str, dict[str, int]]:
        card = tmp_path / paths.DATA_CARD.format(dataset=CELL["dataset"])
        each = {"forget": texts // 2, "retain": texts // 2}
        sections = {"inference": each, "evaluation": each}
        write_json(card, {"counts": {"sections": sections}})
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
    # Of both, 15 minutes are for a slow start.
    assert cut["embed_shard"]["runtime"] - 15 < (many["embed"]["runtime"] - 15) / 4
