"""Which jobs the paper's grid and studies have, on a machine without data, weights or a GPU."""

import re
from pathlib import Path
from typing import Any

import yaml

from tests.support.dry_runs import Snakemake
from tests.support.workflow import ROOT, run


def test_what_extends_the_paper_changes_some_keys(snakemake: Snakemake, tmp_path: Path) -> None:
    """A configuration of one's own stands alone, and has the paper's beneath it when it asks."""

    def jobs(change: dict[str, Any]) -> tuple[int, int]:
        all_jobs = snakemake.look(tmp_path, targets=["data", "studies"], change=change)["all"]
        return all_jobs["examples"], all_jobs.get("study_tables", 0)

    change = {"extends": "paper", "grid": {"seeds": [0]}, "studies": {"reverse": None}}
    assert jobs(change) == (2, 1)
    # Also as a folder's own file, over which another one is laid.
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(change), encoding="utf-8")
    assert jobs({"studies": {"estimator": None}}) == (2, 0)


def literal(folder: Path, *words: str) -> dict[str, int]:
    """Jobs by rule of the profile of the paper to the letter, of one seed."""
    profile = ("--profile", ROOT / "profiles/paper-literal", "--config", "grid={seeds: [0]}")
    output = run(*words, *profile, "-n", "-q", "rules", directory=folder).stdout
    return {rule: int(n) for rule, n in re.findall(r"^(\w+) +(\d+)$", output, re.MULTILINE)}


def test_the_literal_grid_is_the_papers_and_lr_maha_a_study(tmp_path: Path) -> None:
    grid = literal(tmp_path, "all")
    assert grid["retrain"] == 2 * 3 * 8 * 9
    assert grid["endpoint"] == 3 * grid["embed"] == 3 * 2 * 3
    assert grid["score"] == 2 * 3 * 8
    # Certainty is asked for where a list is acted on.
    assert "refits" not in grid
    # Reverse, the estimators without the matched one, and LR-Maha beside LR-COS on both datasets.
    assert literal(tmp_path, "studies")["retrain"] == 3 * 9 + 2 * 9 + 2 * 2 * 9
