"""Rankings by influence in the graph of jobs: who makes them, and what runs again."""

from pathlib import Path
from typing import Any

from tests.support.contract_grid import make
from tests.support.dry_runs import Snakemake

GRID: dict[str, Any] = {
    "grid": {
        "datasets": ["made"],
        "models": ["tiny"],
        "seeds": [0],
        "budgets": [0.4],
        "selectors": ["random", "influence", "token_influence", "token_unigram"],
    },
    "studies": None,
}


def test_both_rankings_are_made_of_one_measurement_and_none_is_refitted(
    snakemake: Snakemake, tmp_path: Path
) -> None:
    make(tmp_path)
    targets = ["all", "evidence"]
    done = snakemake.finish(tmp_path, targets=targets, change=GRID)
    assert [done[rule] for rule in ("influence", "influence_scores", "token_scores")] == [1, 1, 2]
    # Of random and the ratio's selector alone.
    assert done["refits"] == 2
    assert snakemake.would_run(tmp_path, targets=targets, change=GRID) == {}
    change = {**GRID, "influence": {"points": 2}}
    assert {*snakemake.look(tmp_path, targets=["all"], change=change)["begin"]} == {"influence"}
