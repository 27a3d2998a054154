"""Sizes of models that have not been opened, and what they take of each GPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mamushi.lm import parameters, tiny
from mamushi_runs import sizes
from mamushi_runs.sizes import Size

PAPER = {
    **{"method": "partial", "trained_blocks": 3},
    **{"train_input_embedding": True, "train_output_head": True},
}
TINY = {
    **{"hidden_size": 32, "layers": 4, "heads": 4, "key_value_heads": 2},
    **{"intermediate_size": 48, "vocabulary_size": 300, "max_positions": 16},
}


def of(folder: Path, **definition: Any) -> Size:
    return sizes.of({"models": {"m": {"source": None, **definition}}}, "m", folder)


@pytest.mark.parametrize("family", ["llama", "qwen2", "gemma2"])
@pytest.mark.parametrize("change", [{}, {"trained_blocks": 9}, {"train_input_embedding": False}])
def test_a_tiny_model_has_about_the_parameters_that_its_definition_gives(
    family: str, change: dict[str, Any], tmp_path: Path
) -> None:
    model = tiny.build({"family": family, **TINY}, ["one two three four five"] * 4, seed=0)[0]
    training, size = {**PAPER, **change}, of(tmp_path, family=family, **TINY)
    # Norms and biases are more than a thousandth here.
    assert size.parameters == pytest.approx(model.num_parameters(), rel=0.02)
    parameters.freeze(model, {**training, "trained_blocks": min(training["trained_blocks"], 4)})
    trained = model.num_parameters(only_trainable=True)
    assert size.trained(training) == pytest.approx(trained, rel=0.02)


def test_a_card_goes_before_a_name(tmp_path: Path) -> None:
    path = tmp_path / "results/base/m/card.json"
    path.parent.mkdir(parents=True)
    card = {"parameters": 1000, "hidden_size": 10, "layers": 2, "vocabulary_size": 30, "tied": True}
    path.write_text(json.dumps(card), encoding="utf-8")
    size = of(tmp_path, source="somebody/big-70b")
    assert (size.parameters, size.tied, size.block) == (1000, True, (1000 - 300 - 10) // 2)
    path.write_text(json.dumps({**card, "parameters": "many"}), encoding="utf-8")
    assert of(tmp_path, source="somebody/big-70b").billions == pytest.approx(70)


def test_a_folder_is_sized_by_its_weights(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    assert "assumed" in of(tmp_path, source=str(folder)).source
    (folder / "config.json").write_text('{"torch_dtype": "bfloat16"}')
    for name, count in (("a", 3_000_000), ("b", 5_000_000)):
        (folder / f"{name}.safetensors").write_bytes(bytes(count))
    index = {"weight_map": {"x": "a.safetensors", "y": "b.safetensors", "z": "a.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    size = of(tmp_path, source=str(folder))
    assert (size.parameters, size.source) == (4_000_000, "its weights")


@pytest.mark.parametrize(
    ("source", "billions", "reason"),
    [
        ("meta-llama/Llama-3.1-8B", 8.030261248, "published"),
        ("google/gemma-2-2b-it", 2.614341888, "published"),
        ("lab/SmolLM2-360M", 0.36, "in its name"),
        ("mistralai/Mixtral-8x7B-v0.1", 56, "in its name"),
        ("lab/qwen3-1.7b", 1.7, "in its name"),
        ("lab/without", 8, "assumed"),
    ],
)
def test_a_name_is_a_size(source: str, billions: float, reason: str, tmp_path: Path) -> None:
    size = of(tmp_path, source=source)
    assert size.billions == pytest.approx(billions) and reason in size.source
    assert 0 < size.trained(PAPER) < size.parameters
    assert size.layers * size.block <= size.parameters
