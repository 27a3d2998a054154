"""The target `tasks`: which models are asked, and what runs again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import contract_grid
from tests.support.dry_runs import Snakemake

AXES: dict[str, Any] = {
    "datasets": ["made"],
    "models": ["tiny"],
    "seeds": [0, 1],
    "selectors": ["mamushi"],
    "budgets": [0.4],
    "unlearners": ["neggrad_plus"],
}
ASKED = 11
"""Models: of each seed three endpoints, a retrained and an unlearned one; the base is shared."""


def make(folder: Path, **tasks: Any) -> None:
    contract_grid.make(folder)
    (folder / "my.yaml").write_text("task: my\ndataset_kwargs: {data_files: {test: my.json}}\n")
    (folder / "my.json").write_text("{}")
    text = yaml.safe_dump({**contract_grid.CONFIG, "tasks": {**AXES, **tasks}}, sort_keys=False)
    (folder / "config.yaml").write_text(text, encoding="utf-8")


def test_every_model_of_a_cell_is_asked_and_again_for_other_tasks(
    snakemake: Snakemake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make(tmp_path, names=["my.yaml"])
    done = snakemake.finish(tmp_path, targets=["tasks"])
    assert (done["task_scores"], done["task_table"]) == (ASKED, 1)
    assert snakemake.would_run(tmp_path, targets=["tasks"]) == {}
    begun = {"task_scores", "task_table"}
    for change in ({"names": ["my.yaml", "arc_easy"]}, {"examples": 9}):
        again = snakemake.look(tmp_path, targets=["tasks"], change={"tasks": change})
        assert "task_scores" in again["begin"] and not {*again["begin"]} - begun
    # Its data is part of a task.
    (tmp_path / "my.json").write_text('{"another": 1}')
    assert "task_scores" in snakemake.look(tmp_path, targets=["tasks"])["begin"]
