"""Sizes of models that have not been opened, and what they take of each GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from mamushi.io import paths
from mamushi.io.files import write_json
from mamushi_runs.sizes import Size, model_size

CARD = {"parameters": 1000, "hidden_size": 10, "layers": 2, "vocabulary_size": 30, "tied": True}


def size_of(source: str) -> Size:
    return model_size({"models": {"m": {"source": source}}}, "m")


def test_a_card_goes_before_weights_and_these_before_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "big-70b"
    folder.mkdir()
    assert size_of(str(folder)).parameters == 70e9
    for name, count in (("model-1", 3_000_000), ("model-2", 5_000_000), ("adapter", 7)):
        (folder / f"{name}.safetensors").write_bytes(bytes(count))
    assert size_of(str(folder)).parameters == 4_000_000
    card = Path(paths.MODEL_CARD.format(model="m"))
    card.parent.mkdir(parents=True)
    write_json(card, CARD)
    size = size_of(str(folder))
    assert (size.parameters, size.tied, size.blocks(9)) == (1000, True, 1000 - 300)


@pytest.mark.parametrize(
    ("source", "billions", "reason"),
    [
        ("meta-llama/Llama-3.1-8B", 8.030261248, "published"),
        ("google/gemma-2-2b-it", 2, "in its name"),
        ("lab/SmolLM2-360M", 0.36, "in its name"),
        ("mistralai/Mixtral-8x7B-v0.1", 56, "in its name"),
        ("lab/qwen3-1.7b", 1.7, "in its name"),
        ("lab/without", 8, "assumed"),
    ],
)
def test_a_name_is_a_size(source: str, billions: float, reason: str) -> None:
    size = size_of(source)
    assert size.parameters == pytest.approx(billions * 1e9) and reason in size.source
    assert 0 < size.blocks(3) < size.multiplied <= size.parameters
