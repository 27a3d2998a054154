"""The profile of the paper to the letter, in a dry run: it parses, and lists the paper's jobs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.workflow import ROOT, run

PROFILE = ("--profile", ROOT / "profiles/paper-literal", "-n", "-q", "rules")
ONE_SEED = ("--config", "grid={seeds: [0]}")


def counted(folder: Path, *words: str) -> dict[str, int]:
    output = run(*words, *PROFILE, directory=folder).stdout
    return {rule: int(n) for rule, n in re.findall(r"^(\w+) +(\d+)$", output, re.MULTILINE)}


def test_the_grid_is_the_papers_and_lr_maha_a_study(tmp_path: Path) -> None:
    grid = counted(tmp_path, "all", *ONE_SEED)
    assert grid["retrain"] == 2 * 3 * 8 * 9
    assert grid["endpoint"] == 3 * grid["embed"] == 3 * 2 * 3
    assert grid["score"] == 2 * 3 * 8
    # Certainty is asked for where a list is acted on.
    assert "refits" not in grid
    studies = counted(tmp_path, "studies", *ONE_SEED)
    # Reverse, the estimators without the matched one, and LR-Maha beside LR-COS on both datasets.
    assert studies["retrain"] == 3 * 9 + 2 * 9 + 2 * 2 * 9


def test_what_is_unlearned_starts_from_the_contaminated_model(tmp_path: Path) -> None:
    jobs = counted(tmp_path, "unlearning", *ONE_SEED)
    # Qwen on 20 Newsgroups, and Llama Instruct on Jigsaw for what models say. The curves of
    # retraining, which are in the table beside these, begin at beta 0.
    assert jobs["endpoint"] == 2 + 2 + 1
    # Each selector's curve of one or two unlearners, and the models that are asked, of which the
    # paper retrains none.
    assert jobs["retrain"] == 3 * 9
    assert jobs["unlearn"] == 2 * 3 * 9 + 3
    assert "relearn" not in jobs


@pytest.mark.slow
def test_the_whole_grid(tmp_path: Path) -> None:
    assert counted(tmp_path, "all")["retrain"] == 2 * 3 * 5 * 8 * 9
