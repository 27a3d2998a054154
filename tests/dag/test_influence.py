"""Rankings by influence in the graph of jobs: who makes them, and what runs again."""

from pathlib import Path
from typing import Any

from mamushi.io import paths
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


def test_a_model_that_was_contaminated_before_is_measured_itself(
    snakemake: Snakemake, tmp_path: Path
) -> None:
    """Not its base, from which the others are trained, and without a contamination section."""
    make(tmp_path)
    change = with_bare({"datasets": ["bare"], "models": ["ours"]})
    ((inputs, _),) = snakemake.look(tmp_path, targets=["all"], change=change)["files"]["influence"]
    assert {path for path in inputs if path.startswith("results/base/")} == {
        paths.MODEL_CARD.format(model="ours")
    }
    assert paths.TOKENS.format(dataset="bare", model="ours") in inputs


def with_bare(change: dict[str, Any]) -> dict[str, Any]:
    """A grid of `influence` alone, a dataset without texts to contaminate with, and vectors."""
    return {
        "grid": {**GRID["grid"], "selectors": ["influence"], **change},
        "studies": None,
        "datasets": {
            "bare": {
                "kind": "table",
                "path": "raw/mine.csv",
                "text": "body",
                "forget": {"where": "topic == 'snakes'"},
                "sections": {"contamination": 0, "inference": 0.8, "evaluation": 0.2},
            }
        },
        "models": {"vectors": {"contaminated": True, "embeddings": {"path": "raw/v.parquet"}}},
    }
