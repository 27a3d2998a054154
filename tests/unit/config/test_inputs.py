"""What comes from outside is among the settings by its content."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from mamushi.config.complete import complete
from mamushi.stages.data import ExamplesSettings
from mamushi.stages.models import ModelCard, model_files
from mamushi.stages.unlearn import Unlearn


def config(**model: Any) -> dict[str, Any]:
    return complete(
        {
            "grid": {"datasets": ["own"], "models": ["lab"]},
            "datasets": {
                "own": {
                    "kind": "table",
                    "path": "own.csv",
                    "text": "body",
                    "forget": {"column": "topic", "values": ["x"]},
                }
            },
            "models": {"lab": {"source": "lab", **model}},
            "unlearning": {"lists": {"agreed": "agreed.txt", "made": "results/later.parquet"}},
        }
    )


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("lab").mkdir()
    for name in (
        "own.csv",
        "agreed.txt",
        "lab/config.json",
        "lab/a.safetensors",
        "lab/modeling.py",
    ):
        Path(name).write_text(name, encoding="utf-8")


CELL = {"dataset": "own", "model": "lab", "seed": 0}


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def listed(full: dict[str, Any], name: str) -> Any:
    return Unlearn.of(full, **CELL, unlearner="salun", list=name)


def test_files_by_their_digests() -> None:
    assert ExamplesSettings.of(config(), dataset="own").inputs == {"own.csv": digest("own.csv")}
    assert listed(config(), "agreed").inputs == {"agreed.txt": digest("agreed.txt")}
    card = ModelCard.of(config(), model="lab")
    assert card.inputs.keys() == {"config.json", "a.safetensors"}


def test_a_dry_run_does_without_files_that_are_not_there() -> None:
    full, hub = config(), config(source="some/model", revision="0" * 40)
    Path("own.csv").unlink()
    Path("lab").rename("gone")
    assert listed(full, "made").inputs == {}
    assert ExamplesSettings.of(full, dataset="own").inputs == {}
    assert ModelCard.of(full, model="lab").inputs == {}
    assert model_files(hub, "lab") == []
