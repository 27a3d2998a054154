"""What is left of single texts: which models are made for it, and what a change runs again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import contract_grid
from tests.support.dry_runs import Snakemake

LEFT: dict[str, Any] = {
    "datasets": ["made"],
    "models": ["tiny"],
    "seeds": [0, 1],
    "selectors": ["mamushi"],
    "budgets": [0.4],
    "unlearners": ["neggrad_plus"],
}
MEMBERSHIP = {"membership": 7, "membership_retrained": 2, "membership_unlearned": 2}
EXTRACTION = {"extraction": 7, "extraction_retrained": 2, "extraction_unlearned": 2}
TOLD = {"left_tables": 1, "figure_left": 1}
MADE = {"left_retrain": 2, "left_unlearn": 2}
TARGETS = ["results/tables/left.parquet", "results/figures/left.pdf"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, snakemake: Snakemake) -> Path:
    folder = tmp_path_factory.mktemp("left")
    contract_grid.make(folder)
    text = yaml.safe_dump({**contract_grid.CONFIG, "left": LEFT}, sort_keys=False)
    (folder / "config.yaml").write_text(text, encoding="utf-8")
    done = snakemake.finish(folder, targets=TARGETS)
    asked = {**MEMBERSHIP, **EXTRACTION, **TOLD, **MADE}
    # The base model is the same for both seeds.
    assert {rule: done.get(rule) for rule in asked} == asked
    assert not {"retrain", "unlearn", "unlearn_and_probe", "evaluate"} & set(done)
    return folder


@pytest.mark.parametrize(
    ("change", "runs"),
    [
        ({"least": 0.3}, {**MEMBERSHIP, **TOLD}),
        ({"texts": 10}, {**MEMBERSHIP, **TOLD}),
        ({"extraction": {"samples": 1}}, {**EXTRACTION, **TOLD}),
        ({"extraction": {"prefixes": [0.2]}}, {**EXTRACTION, **TOLD}),
        ({"extraction": {"texts": 10}}, {**EXTRACTION, **TOLD}),
        # Fewer of them need no new model.
        ({"seeds": [0]}, TOLD),
        ({"unlearners": []}, TOLD),
        ({"selectors": []}, TOLD),
        ({}, {}),
    ],
    ids=str,
)
def test_a_change_runs_what_it_affects(
    snakemake: Snakemake, finished: Path, change: dict[str, Any], runs: dict[str, int]
) -> None:
    seen = snakemake.would_run(finished, targets=TARGETS, change={"left": change})
    assert seen == runs


def test_without_lists_the_models_that_are_there_are_asked(
    snakemake: Snakemake, tmp_path: Path
) -> None:
    contract_grid.make(tmp_path)
    done = snakemake.finish(tmp_path, targets=TARGETS)
    # Two datasets, two models, of which one has been trained before; two seeds.
    assert done["membership"] == done["extraction"] == 2 * 2 * (4 * 2 - 1)
    assert not {"remove", "left_retrain", "left_unlearn"} & set(done)
