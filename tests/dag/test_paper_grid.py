"""The paper's grid, on a machine without data, weights or a GPU."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from tests.support.demo import whole
from tests.support.workflow import ROOT, run


def jobs(output: str) -> dict[str, int]:
    """Jobs by rule, out of what a dry run with ``--quiet rules`` prints."""
    return {rule: int(n) for rule, n in re.findall(r"^(\w+) +(\d+)$", output, re.MULTILINE)}


def test_studies_are_targets_of_their_own(tmp_path: Path) -> None:
    # The demo's model, so that the test is about the targets and takes two seconds.
    science = whole()
    science["grid"]["selectors"] = ["random"]
    science["studies"] = {
        "reverse": {
            "datasets": ["synthetic"],
            "models": ["tiny-llama"],
            "selectors": ["random", "mamushi", "anti_mamushi"],
        },
        "estimator": None,
    }
    grid = jobs(run("--dry-run", "-q", "rules", directory=tmp_path, config=science).stdout)
    assert grid["retrain"] == 2 * 1 * 3
    assert "figure_study" not in grid
    studies = jobs(run("studies", "-n", "-q", "rules", directory=tmp_path, config=science).stdout)
    assert studies["retrain"] == 2 * 3 * 3
    assert studies["figure_study"] == studies["study_tables"] == 1


def test_the_real_run_is_of_one_model_in_aligned_steps(tmp_path: Path) -> None:
    science = yaml.safe_load((ROOT / "studies/real/config.yaml").read_text(encoding="utf-8"))
    folder = tmp_path / science["models"]["smollm2"]["source"]
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}", encoding="utf-8")
    output = run("all", "studies", "-n", "-q", "rules", directory=tmp_path, config=science).stdout
    counted = jobs(output)
    assert (counted["examples"], counted["model_card"]) == (1, 1)
    assert (counted["retrain"], counted["endpoint"]) == (7 * 3, 3)
