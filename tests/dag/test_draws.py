"""Seeds that draw their texts: each job reads those of its own seed, and shares what it shared."""

import re
from pathlib import Path

from mamushi.io import paths
from tests.support.contract_grid import TARGETS, changed
from tests.support.dry_runs import Snakemake


def test_each_seed_reads_its_own_draw(snakemake: Snakemake, finished: Path) -> None:
    two = {"grid": {"seeds": [0, 1]}}
    before = snakemake.look(finished, targets=TARGETS, change=two)["all"]
    assert "draw" not in before
    drawn = two | changed("datasets.mine.draws", {"forget": 9})
    seen = snakemake.look(finished, targets=TARGETS, change=drawn)
    assert seen["all"] == before | {"draw": 2}
    jobs = [job for of_rule in seen["files"].values() for job in of_rule]
    pool, readers = paths.EXAMPLES.format(dataset="mine"), 0
    for inputs, outputs in jobs:
        seeds = {*re.findall(r"/mine/(?:[^/]+/)?seed(\d+)/", " ".join(outputs))}
        if own := {*re.findall(r"data/mine/seed(\d+)/", " ".join(inputs))}:
            readers += 1
            assert own == seeds
        elif seeds and pool in inputs:
            assert outputs == [paths.DRAWN.format(dataset="mine", seed=seeds.pop())]
    assert readers > 50
    # What seeds share is not made again, nor what is of another dataset.
    assert not seen["needed"].keys() & {"examples", "tokens", "base_model"}
    assert {w["dataset"] for _, w in seen["runs"] if w.get("seed") == "0"} == {"mine"}
