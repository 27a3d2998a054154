"""What comes from outside is among the settings by its content."""

import hashlib
from pathlib import Path
from typing import Any

from mamushi.config.complete import complete
from mamushi.stages.data import ExamplesSettings
from mamushi.stages.models import ModelCard, model_files
from mamushi.stages.unlearn import Unlearn

CELL = {"dataset": "own", "model": "lab", "seed": 0}


def config(**model: Any) -> dict[str, Any]:
    forget = {"where": "topic == 'x'"}
    return complete(
        {
            "grid": {"datasets": ["own"], "models": ["lab"]},
            "datasets": {"own": {"kind": "table", "path": "own.csv", "forget": forget}},
            "models": {"lab": {"source": "lab", **model}},
            "unlearning": {"lists": {"agreed": "agreed.txt", "made": "results/later.parquet"}},
        }
    )


def inputs(full: dict[str, Any]) -> list[dict[str, str]]:
    """The digests of a table, a model and two lists of a user's own."""
    lists = [Unlearn.of(full, **CELL, unlearner="salun", list=name) for name in ("agreed", "made")]
    of_all = [ExamplesSettings.of(full, dataset="own"), ModelCard.of(full, model="lab"), *lists]
    return [one.inputs for one in of_all]


def test_files_are_known_by_their_digests_and_may_be_gone_in_a_dry_run() -> None:
    Path("lab").mkdir()
    names = ("own.csv", "agreed.txt", "lab/config.json", "lab/a.safetensors", "lab/modeling.py")
    for name in names:
        Path(name).write_text(name, encoding="utf-8")
    full, hub = config(), config(source="some/model", revision="0" * 40)
    table, model, agreed, made = inputs(full)
    assert table == {"own.csv": hashlib.sha256(b"own.csv").hexdigest()}
    assert agreed == {"agreed.txt": hashlib.sha256(b"agreed.txt").hexdigest()} and made == {}
    assert model.keys() == {"config.json", "a.safetensors"} and model_files(hub, "lab") == []
    for name in names:
        Path(name).unlink()
    assert inputs(full) == [{}, {}, {}, {}]
