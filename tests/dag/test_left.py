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
ASKED = 11
"""Models: of each seed three endpoints, a retrained and an unlearned one; the base is shared."""
TABLES = ["results/tables/membership.parquet"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, snakemake: Snakemake) -> Path:
    """A folder in which all other targets are done, and then these, and the tensors are deleted
    that were read by all that reads them."""
    folder = tmp_path_factory.mktemp("left")
    contract_grid.make(folder)
    text = yaml.safe_dump({**contract_grid.CONFIG, "left": LEFT}, sort_keys=False)
    (folder / "config.yaml").write_text(text, encoding="utf-8")
    assert "membership" not in snakemake.finish(folder, targets=contract_grid.TARGETS)
    # Of the second seed nothing was unlearned.
    expected = {"membership": ASKED, "unlearn": 1, "left_tables": 1}
    assert snakemake.finish(folder, targets=TABLES) == expected
    for selector in ("retrained", "neggrad_plus"):
        for path in folder.glob(f"results/runs/*/*/seed*/arms/{selector}/*/*/trained.safetensors"):
            path.unlink()
    return folder


CHANGES: list[tuple[dict[str, Any], dict[str, int]]] = [
    ({}, {}),
    ({"left": {"texts": 9}}, {"membership": ASKED, "retrain": 2, "unlearn": 2, "left_tables": 1}),
    # Fewer of them need no new model.
    ({"left": {"selectors": []}}, {"left_tables": 1}),
]


@pytest.mark.parametrize(("change", "runs"), CHANGES, ids=str)
def test_a_change_runs_what_it_affects(
    snakemake: Snakemake, finished: Path, change: dict[str, Any], runs: dict[str, int]
) -> None:
    assert snakemake.would_run(finished, targets=TABLES, change=change) == runs
