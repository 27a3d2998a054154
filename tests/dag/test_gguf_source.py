"""A model whose source is a GGUF file: what a change of the file, and of the training, runs again.

The grid of the contracts has no such model, so that ``convert`` has its contract here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.dry_runs import BEGAN, Snakemake

SOURCE = "raw/bought.gguf"
CONFIG: dict[str, Any] = {
    "grid": {
        "datasets": ["made"],
        "models": ["bought", "tiny"],
        "seeds": [0],
        "budgets": [0.4],
        "selectors": ["random", "mamushi"],
    },
    "studies": {},
    "datasets": {"made": {"kind": "synthetic"}},
    "models": {
        "bought": {"source": SOURCE},
        "tiny": {"family": "llama", "pretraining": {"datasets": ["made"]}},
    },
}
OF_NO_MODEL = {"tables", "effects", "subgroups"}
OF_NO_MODEL |= {"figure_perplexity", "figure_sad", "figure_shares"}
"""What is made once of the results of all models."""


def write(path: Path, content: str) -> None:
    """A file that begins as GGUF does, older than all that is made of it."""
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"GGUF\3\0\0\0" + content.encode())
    os.utime(path, (BEGAN - 1000, BEGAN - 1000))


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory, snakemake: Snakemake) -> tuple[Path, Any]:
    """A folder in which all is made, and the jobs by rule that made it."""
    folder = tmp_path_factory.mktemp("done")
    (folder / "config.yaml").write_text(yaml.safe_dump(CONFIG, sort_keys=False), encoding="utf-8")
    write(folder / SOURCE, "one")
    return folder, snakemake.finish(folder, targets=["all"])


@pytest.fixture
def finished(done: tuple[Path, Any]) -> Iterator[Path]:
    yield done[0]
    write(done[0] / SOURCE, "one")


def test_only_what_a_file_holds_runs_its_model_again(
    snakemake: Snakemake, finished: Path, done: tuple[Path, Any]
) -> None:
    path = finished / SOURCE
    path.touch()
    assert snakemake.would_run(finished, targets=["all"]) == {}
    # As old as the one before it, and of its size.
    write(path, "two")
    seen = snakemake.look(finished, targets=["all"])
    assert seen["blind"] == {}
    assert {where.get("model") for rule, where in seen["runs"] if rule not in OF_NO_MODEL} == {
        "bought"
    }
    # All of this model, which is half of all but for what only one of the two has.
    half = {rule: n if rule in OF_NO_MODEL else n // 2 for rule, n in done[1].items()}
    expected = {rule: n for rule, n in half.items() if n} | {"convert": 1}
    assert seen["needed"] == expected
