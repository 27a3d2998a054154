"""A model of 70 billion parameters on nodes of eight GPUs: its dry run on SLURM, and its plan."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.workflow import ROOT, plan, run

LARGE: dict[str, Any] = {
    "extends": "paper",
    "grid": {"models": ["llama-3.1-70b"], "datasets": ["jigsaw"], "seeds": [0]},
    "models": {
        "llama-3.1-70b": {
            "source": "meta-llama/Llama-3.1-70B",
            "revision": "349b2ddb53ce8f2849a6c168a81980ab25258dac",
        }
    },
    "execution": {"gpus_per_job": 8},
    "studies": {"reverse": None},
}


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """Options of a run of it on SLURM, as docs/guide/large-models.md has them."""
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(LARGE))
    given = ["all", "--profile", ROOT / "profiles/slurm", "--configfile", tmp_path / "mine.yaml"]
    return list(map(str, given))


def test_each_job_with_the_model_asks_for_eight_gpus(words: list[str], tmp_path: Path) -> None:
    said = run("-n", *words, directory=tmp_path).stdout
    asked = re.findall(r"^ *(?:local)?rule (\w+):$.*?^ +resources: (.*?)$", said, re.M | re.S)
    gpus = {rule: re.findall(r"\bgpu=(\d+)", resources) for rule, resources in asked}
    assert {rule for rule, count in gpus.items() if count} == {
        *("contaminate", "gold", "beta0", "embed", "retrain", "evaluate")
    }
    assert {count for counts in gpus.values() for count in counts} == {"8"}
    # Those of one job are on one node.
    assert {re.search(r"\bnodes=(\d+)", resources)[1] for _, resources in asked} == {"1"}


def test_eight_gpus_ask_for_what_their_shares_take(words: list[str], tmp_path: Path) -> None:
    one, eight = (_asked(words, tmp_path, gpus) for gpus in (1, 8))
    for rule in ("contaminate", "beta0", "gold", "retrain", "embed", "evaluate"):
        assert eight[rule]["mem_mb"] == one[rule]["mem_mb"] + 7 * 4000 > 400_000
    # Half of their time is taken for waiting for what the others have of the model.
    for rule in ("evaluate", "embed", "beta0", "retrain"):
        assert 0.2 < (eight[rule]["runtime"] - 15) / (one[rule]["runtime"] - 15) < 0.3
    planned = plan(*words, directory=tmp_path)["rules"]["beta0"]
    assert 1 < eight["beta0"]["runtime"] * 60 / planned["seconds"] < 5


def _asked(words: list[str], folder: Path, gpus: int) -> dict[str, dict[str, int]]:
    """Memory and minutes of the first attempt, by rule."""
    mine = folder / "mine.yaml"
    mine.write_text(yaml.safe_dump({**LARGE, "execution": {"gpus_per_job": gpus}}))
    found: dict[str, dict[str, int]] = {}
    rule = re.compile(r"^ *(?:local)?rule (\w+):$.*?^ +resources: (.*?)$", re.M | re.S)
    for name, resources in rule.findall(run("-n", *words, directory=folder).stdout):
        each = {key: int(n) for key, n in re.findall(r"\b(mem_mb|runtime)=(\d+)", resources)}
        found.setdefault(name, each)
    return found
