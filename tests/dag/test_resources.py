"""What jobs ask for once the texts are counted."""

from __future__ import annotations

from pathlib import Path

from mamushi.io import paths
from mamushi.io.files import write_json
from tests.support import contract_grid
from tests.support.dry_runs import Snakemake

CELL = {"dataset": "mine", "model": "tiny", "seed": "0"}


def test_memory_and_time_follow_the_texts_once_they_are_counted(
    snakemake: Snakemake, tmp_path: Path
) -> None:
    contract_grid.make(tmp_path)
    perplexity = paths.PERPLEXITY.format(**CELL, arm="beta0")
    targets = [paths.SCORES.format(**CELL, selector="mamushi"), perplexity]

    def asked(texts: int) -> dict[str, dict[str, int]]:
        counts = {"forget": texts // 2, "retain": texts // 2}
        sections = {"inference": counts, "evaluation": counts}
        card = tmp_path / paths.DATA_CARD.format(dataset=CELL["dataset"])
        write_json(card, {"counts": {"sections": sections}})
        asked: dict[str, dict[str, int]] = snakemake.look(tmp_path, targets=targets)["resources"]
        return asked

    few, many = asked(2000), asked(2_000_000)
    for rule in ("embed", "score"):
        for name in ("mem_mb", "runtime"):
            assert many[rule][name] > 1.4 * few[rule][name], (rule, name)
    assert many["evaluate"]["runtime"] > 1.4 * few["evaluate"]["runtime"]
