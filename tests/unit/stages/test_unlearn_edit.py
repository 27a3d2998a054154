"""The stage `unlearn` with what trains nothing: an arm as any other, of which an edit is stored."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.torch import load_file

from mamushi.cli import main
from mamushi.io import schemas
from mamushi.io.files import read_json
from mamushi.io.tables import read_table
from mamushi.registry import plugin, plugins
from tests.support.models import SIZES
from tests.support.stage_files import (
    FORGET,
    listed,
    unlearn_words,
    unlearning,
    write_start,
)

KINDS = [name for name, kind in plugins("unlearner").items() if not kind.trains]
TENSORS = {"logit_bias": {"bias"}, "tilt": {"A", "B", "c"}}
SET = {"logit_bias": {"strength": 0.7}, "tilt": {"strength": 0.7, "temperature": 1.05}}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("edit")
    write_start(root)
    return root


def settings_of(kind: str, **changes: Any) -> dict[str, Any]:
    return unlearning(kind) | {"settings": plugin("unlearner", kind).defaults | changes}


def edit(base: Path, out: Path, kind: str, **options: Any) -> Path:
    settings = options.pop("settings", settings_of(kind, **SET[kind]))
    assert main(unlearn_words(base, out, settings, **options)) == 0
    return out / "trained.safetensors"


@pytest.mark.parametrize("kind", KINDS)
def test_it_stores_the_edit_alone_and_a_log_without_steps(
    kind: str, base: Path, tmp_path: Path
) -> None:
    removal = listed(tmp_path / "removals.parquet", base, ["if3", "if0", "if7", "if5"])
    stored = edit(base, tmp_path / "out", kind, removal=removal)
    tensors = load_file(stored)
    names = {f"edit.{name}" for name in TENSORS[kind] | {"strength", "temperature"}}
    assert tensors.keys() == names
    rows = SIZES["vocabulary_size"]
    assert all(len(tensors[f"edit.{name}"]) == rows for name in TENSORS[kind] - {"A"})
    card = read_json(tmp_path / "out/card.json")
    counts = {"texts": FORGET, "removed": 4, "steps": 0, "stopped_at": None, "masked": None}
    assert card.items() >= {**counts, "trained_parameters": 0, "strength": 0.7}.items()
    assert card["temperature"] == SET[kind].get("temperature", 1.0)
    assert np.isfinite(card["harm"])
    assert len(read_table(tmp_path / "out/log.parquet", schemas.UNLEARN_LOG)) == 0
    assert not (tmp_path / "out/card.json.state").exists()
    again = edit(base, tmp_path / "again", kind, removal=removal)
    assert load_file(again).keys() == names
    for name, tensor in load_file(again).items():
        assert tensor.tolist() == tensors[name].tolist()
