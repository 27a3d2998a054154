"""What is left in models: what is made for it, and what a change of a key makes again."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import contract_grid
from tests.support.dry_runs import Snakemake

TARGETS = ("results/tables/klom.parquet",)
TASKS = {"utility": {"tasks": ["arc_easy"]}}


@pytest.fixture(scope="module")
def snakemake() -> Iterator[Snakemake]:
    with Snakemake() as started:
        yield started


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, snakemake: Snakemake) -> Path:
    """A folder in which all other targets are done, and then this one."""
    folder = tmp_path_factory.mktemp("left")
    contract_grid.make(folder)
    snakemake.finish(folder, targets=contract_grid.TARGETS)
    made = snakemake.finish(folder, targets=TARGETS)
    # Two runs of the probe, with one list each; of `ours`, which is contaminated as it is, no base
    # or contaminated model has been measured.
    assert made == {
        "evaluate": 3,
        "left_retrain": 2,
        "left_unlearn": 2,
        "gold_relapse": 2,
        "retrained_relapse": 2,
        "unlearned_relapse": 2,
        "left_models": 1,
    }
    for models in (folder / "results/runs").glob("*/*/*/left"):
        # Deleted by a real run, once all has been asked of them.
        shutil.rmtree(models)
    return folder


DELETED = ("retrained", "unlearned")
CHANGES: list[tuple[dict[str, Any], dict[str, int]]] = [
    ({}, {}),
    # Models that were let go are made again for what is asked of them anew, and asked all of it.
    (
        {"probe": {"relearning": {"examples": 8}}},
        {"left_models": 1, "left_retrain": 2, "left_unlearn": 2}
        | {f"{whose}_relapse": 2 for whose in ("gold", *DELETED)},
    ),
    (
        TASKS,
        {"left_models": 1, "left_retrain": 2, "left_unlearn": 2, "tasks": 6}
        | {f"{whose}_{what}": 2 for whose in DELETED for what in ("relapse", "tasks")},
    ),
]


@pytest.mark.parametrize(("change", "runs"), CHANGES)
def test_a_change_runs_what_it_affects(
    snakemake: Snakemake, finished: Path, change: dict[str, Any], runs: dict[str, int]
) -> None:
    asked = (*TARGETS, "results/tables/utility_tasks.parquet") if "utility" in change else TARGETS
    assert snakemake.would_run(finished, targets=asked, change=change) == runs


def test_other_targets_do_not_make_it(snakemake: Snakemake, finished: Path) -> None:
    change = TASKS | {"probe": {"relearning": {"examples": 8}}}
    runs = snakemake.would_run(finished, targets=contract_grid.TARGETS, change=change)
    assert not any("left" in rule or "relapse" in rule or "tasks" in rule for rule in runs)
