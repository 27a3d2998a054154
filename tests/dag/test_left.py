"""The targets `left` and `tasks`: which models are asked what, and what a change runs again."""

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
CHANGES: list[tuple[str, dict[str, Any], dict[str, int]]] = [
    ("left", {}, {}),
    ("left", {"texts": 9}, {"membership": ASKED, "retrain": 2, "unlearn": 2, "left": 1}),
    # Fewer of them need no new model.
    ("left", {"selectors": []}, {"left": 1}),
    ("tasks", {}, {}),
    ("tasks", {"examples": 9}, {"task_scores": ASKED, "retrain": 2, "unlearn": 2, "tasks": 1}),
]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, snakemake: Snakemake) -> Path:
    """A folder in which both targets are done, and the tensors are deleted that all have read."""
    folder = tmp_path_factory.mktemp("left")
    contract_grid.make(folder)
    (folder / "raw/my.yaml").write_text("task: my\ndataset_kwargs: {data_files: {test: my.json}}\n")
    (folder / "raw/my.json").write_text("{}")
    sections = {"left": AXES, "tasks": {**AXES, "names": ["raw/my.yaml"]}}
    text = yaml.safe_dump({**contract_grid.CONFIG, **sections}, sort_keys=False)
    (folder / "config.yaml").write_text(text, encoding="utf-8")
    done = snakemake.finish(folder, targets=["left", "tasks"])
    assert (done["membership"], done["task_scores"], done["unlearn"]) == (ASKED, ASKED, 2)
    for path in folder.glob("results/runs/*/*/seed*/arms/*/*/*/trained.safetensors"):
        path.unlink()
    return folder


@pytest.mark.parametrize(("target", "change", "runs"), CHANGES, ids=str)
def test_a_change_runs_what_it_affects(
    snakemake: Snakemake, finished: Path, target: str, change: dict[str, Any], runs: dict[str, int]
) -> None:
    needed = snakemake.would_run(finished, targets=[target], change={target: change})
    assert needed == runs


def test_the_data_of_a_task_are_part_of_it(
    snakemake: Snakemake, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(finished)
    (finished / "raw/my.json").write_text('{"another": 1}')
    assert "task_scores" in snakemake.look(finished, targets=["tasks"])["begin"]
