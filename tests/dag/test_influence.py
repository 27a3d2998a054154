"""Rankings by what a model says of tokens in the graph of jobs: who makes them, what runs again."""

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
    assert [done[rule] for rule in ("influence", "measured_scores", "token_scores")] == [1, 1, 2]
    # Of random and the ratio's selector alone.
    assert done["refits"] == 2
    assert snakemake.would_run(tmp_path, targets=targets, change=GRID) == {}
    for key in ("points", "batches", "targets"):
        change = {**GRID, "influence": {key: 2}}
        assert snakemake.look(tmp_path, targets=["all"], change=change)["begin"] == ["influence"]


def test_one_twin_serves_all_budgets_and_a_judge_has_its_own(
    snakemake: Snakemake, tmp_path: Path
) -> None:
    make(tmp_path)
    names = ["cross_entropy", "token_cross_entropy"]
    axes = {**GRID["grid"], "budgets": [0.2, 0.4], "selectors": names}
    change: dict[str, Any] = {**GRID, "grid": axes}
    done = snakemake.finish(tmp_path, targets=["all"], change=change)
    assert (done["cross_entropy"], done["measured_scores"], done["token_scores"]) == (1, 1, 1)
    assert (done["retrain"], done["refits"]) == (4, 1)
    more = {**change, "cross_entropy": {"folds": 3}}
    assert snakemake.look(tmp_path, targets=["all"], change=more)["begin"] == ["cross_entropy"]
    # Of a judge that no texts have contaminated, too: its model, its twin, and one ranking more.
    change["selectors"] = {"judged": {"kind": "cross_entropy", "judge": "ours"}}
    change["grid"] = {**axes, "selectors": [*names, "judged"]}
    more = snakemake.finish(tmp_path, targets=["removals"], change=change)
    assert (more["cross_entropy"], more["measured_scores"]) == (1, 1)
    assert "endpoint" not in more and "embed" not in more
