"""A model of 70 billion parameters on nodes of eight GPUs: its dry run on SLURM, and its plan."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.workflow import ROOT, run

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
        *("endpoint", "embed", "retrain", "evaluate")
    }
    assert {count for counts in gpus.values() for count in counts} == {"8"}
    # The profile says once where jobs on a GPU are.
    for _, resources in asked:
        place = re.findall(r"(?:slurm_partition|gpu_model)=(\w+)", resources)
        assert place == (["gpu", "h100"] if re.search(r"\bgpu=", resources) else ["cpu"])
    # Those of one job are on one node.
    assert {re.search(r"\bnodes=(\d+)", resources)[1] for _, resources in asked} == {"1"}
