"""The target `left`: which models are asked what, and what a change runs again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import contract_grid
from tests.support.dry_runs import Snakemake

pytestmark = pytest.mark.slow

LEFT: dict[str, Any] = {
    "datasets": ["made"],
    "models": ["tiny"],
    "seeds": [0, 1],
    "selectors": ["mamushi"],
    "budgets": [0.4],
    "unlearners": ["neggrad_plus"],
}
ASKED = {"membership": 7}
"""The base model is the same for both seeds."""
MAKERS = {"retrain_and_left": 1, "unlearn_and_left": 1}
BOTH = {"retrain_and_probe_and_left": 1, "unlearn_and_probe_and_left": 1}
"""Of the first seed, which is probed as well; and of the second."""
TOLD = {"left_tables": 1}
TABLES = ["results/tables/membership.parquet"]
RELAPSE = "results/tables/relapse.parquet"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, snakemake: Snakemake) -> Path:
    """A folder in which all other targets are done, and then these: no model is made twice."""
    folder = tmp_path_factory.mktemp("left")
    contract_grid.make(folder)
    text = yaml.safe_dump({**contract_grid.CONFIG, "left": LEFT}, sort_keys=False)
    (folder / "config.yaml").write_text(text, encoding="utf-8")
    done = snakemake.finish(folder, targets=contract_grid.TARGETS)
    # Of the second seed nothing is unlearned yet.
    first = {"retrain_and_left": 1, **BOTH, "retrain_and_probe": 1, "unlearn_and_probe": 1}
    assert {**done, **first} == done
    assert "membership" not in done
    done = snakemake.finish(folder, targets=TABLES)
    assert done == {**ASKED, **TOLD, "unlearn_and_left": 1}
    return folder


CHANGES: list[tuple[dict[str, Any], dict[str, int]]] = [
    ({}, {}),
    ({"left": {"texts": 9}}, {"membership": 7, **MAKERS, **BOTH, **TOLD}),
    # Fewer of them need no new model.
    ({"left": {"selectors": []}}, TOLD),
]


@pytest.mark.parametrize(("change", "runs"), CHANGES, ids=str)
def test_a_change_runs_what_it_affects(
    snakemake: Snakemake, finished: Path, change: dict[str, Any], runs: dict[str, int]
) -> None:
    assert snakemake.would_run(finished, targets=TABLES, change=change) == runs


def test_a_model_that_was_let_go_is_made_again_to_be_asked_anew(
    snakemake: Snakemake, finished: Path
) -> None:
    change = {"probe": {"relearning": {"examples": 8}}}
    found = snakemake.would_run(finished, targets=[RELAPSE], change=change)
    again = {"retrain_and_probe": 1, "unlearn_and_probe": 1, **BOTH}
    assert found == {"relearn": 2, **again, "judge": 2, "probes": 1}


def test_without_lists_the_models_that_are_there_are_asked(
    snakemake: Snakemake, tmp_path: Path
) -> None:
    contract_grid.make(tmp_path)
    done = snakemake.finish(tmp_path, targets=TABLES)
    # Two datasets, two models, of which one has been trained before; two seeds.
    assert done["membership"] == 2 * 2 * (4 * 2 - 1)
    assert not {rule for rule in done if rule.startswith(("remove", "retrain", "unlearn"))}


def test_a_results_folder_of_an_older_version_is_refused(
    snakemake: Snakemake, tmp_path: Path
) -> None:
    contract_grid.make(tmp_path)
    (tmp_path / "results/runs/made/tiny/seed0/perplexity").mkdir(parents=True)
    with pytest.raises(AssertionError, match="move the folder results away"):
        snakemake.would_run(tmp_path, targets=["data"])
