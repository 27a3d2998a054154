"""Sizes and floating-point operations of models that have not been opened."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from mamushi.lm import parameters, tiny
from mamushi_runs.forecast import sizes, work
from mamushi_runs.forecast.sizes import Size

PAPER = {
    "method": "partial",
    "trained_blocks": 3,
    "train_input_embedding": True,
    "train_output_head": True,
}
CHANGES: list[dict[str, Any]] = [
    {},
    {"trained_blocks": 1},
    {"train_input_embedding": False},
    {"train_input_embedding": False, "train_output_head": False},
    {"method": "full"},
    {"method": "lora", "lora": {"rank": 4, "alpha": 8, "dropout": 0, "target_modules": None}},
]
TINY = {
    "hidden_size": 32,
    "layers": 4,
    "heads": 4,
    "key_value_heads": 2,
    "intermediate_size": 48,
    "vocabulary_size": 300,
    "max_positions": 16,
}


def of(tmp_path: Path, **definition: Any) -> Size:
    return sizes.of({"models": {"m": {"source": None, **definition}}}, "m", tmp_path)


def built(family: str) -> Any:
    texts = ["one two three four five six seven"] * 4
    return tiny.build({"family": family, **TINY}, texts, seed=0)[0]


@pytest.mark.parametrize("family", ["llama", "qwen2", "gemma2"])
@pytest.mark.parametrize("change", [*CHANGES, {"trained_blocks": 9}])
def test_a_tiny_model_has_about_the_parameters_that_its_definition_gives(
    family: str, change: dict[str, Any], tmp_path: Path
) -> None:
    model, training = built(family), {**PAPER, **change}
    found = of(tmp_path, family=family, **TINY)
    blocks = min(training["trained_blocks"], TINY["layers"])
    # Norms and biases are more than a thousandth here.
    assert found.parameters == pytest.approx(parameters.count(model).all, rel=0.02)
    parameters.freeze(model, {**training, "trained_blocks": blocks})
    counted = parameters.count(model)
    assert found.trained(training) == pytest.approx(counted.trained, rel=0.02)


PUBLISHED = {
    # parameters of all, billions trained, GFLOP per token.
    "meta-llama/Llama-3.1-8B": (8_030_261_248, 1.70, 32.4),
    "Qwen/Qwen2.5-7B": (7_615_616_512, 1.79, 30.8),
    "google/gemma-2-2b": (2_614_341_888, 0.82, 12.1),
}


@pytest.mark.parametrize(("source", "figures"), PUBLISHED.items())
def test_the_papers_models_have_their_published_sizes(
    source: str, figures: tuple[int, float, float], tmp_path: Path
) -> None:
    found = of(tmp_path, source=source)
    parameters_of, trained, per_token = figures
    assert found.parameters == parameters_of
    assert found.trained(PAPER) / 1e9 == pytest.approx(trained, abs=0.01)
    assert work.fine_tune(found, PAPER) / 1e9 == pytest.approx(per_token, rel=0.005)
    assert "published" in found.source


@pytest.mark.parametrize("family", ["llama", "qwen2", "gemma2"])
@pytest.mark.parametrize("change", CHANGES)
def test_operations_are_those_that_torch_counts(
    family: str, change: dict[str, Any], tmp_path: Path
) -> None:
    model, training, size = built(family), {**PAPER, **change}, of(tmp_path, family=family, **TINY)
    ids = torch.arange(7, 9).repeat(8, 1)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(input_ids=ids)
    # Torch counts attention's products too, a few per cent here, and neither norms nor biases.
    assert work.forward(size) * ids.numel() == pytest.approx(counter.get_total_flops(), rel=0.06)
    parameters.freeze(model, training)
    with FlopCounterMode(display=False) as counter:
        model(input_ids=ids).logits.sum().backward()
    counted = counter.get_total_flops()
    assert work.fine_tune(size, training) * ids.numel() == pytest.approx(counted, rel=0.06)


def card(tmp_path: Path, **changes: Any) -> None:
    path = tmp_path / "results/base/m/card.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    about = {
        **{"parameters": 1000, "hidden_size": 10, "layers": 2, "vocabulary_size": 30},
        **{"tied": True, **changes},
    }
    path.write_text(json.dumps(about), encoding="utf-8")


def test_a_card_goes_before_a_name(tmp_path: Path) -> None:
    card(tmp_path)
    found = of(tmp_path, source="somebody/big-70b")
    assert (found.parameters, found.tied, found.source) == (1000, True, "its card")
    assert found.block == (1000 - 300 - 10) // 2
    card(tmp_path, parameters="many")
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
    found = of(tmp_path, source=str(folder))
    assert (found.parameters, found.source) == (4_000_000, "its weights")
    (folder / "config.json").write_text("{")
    assert of(tmp_path, source=str(folder)).parameters == 2_000_000


@pytest.mark.parametrize(
    ("source", "billions"),
    [("lab/SmolLM2-360M", 0.36), ("mistralai/Mixtral-8x7B-v0.1", 56), ("lab/qwen3-1.7b", 1.7)],
)
def test_a_number_in_a_name_is_a_size(source: str, billions: float, tmp_path: Path) -> None:
    found = of(tmp_path, source=source)
    assert found.billions == pytest.approx(billions)
    assert "in its name" in found.source
    assert 0 < found.trained(PAPER) < found.parameters
    assert found.layers * found.block <= found.parameters


@pytest.mark.parametrize(
    ("screen", "texts"), [(None, 2_000), (300, 300), (0.1, 200), (9_000, 2_000)]
)
def test_what_a_screen_leaves_out_is_not_counted(
    screen: float | None, texts: float, tmp_path: Path
) -> None:
    table = tmp_path / "corpus.jsonl"
    table.write_bytes(b" " * int(2_000 * work.BYTES_OF_A_TEXT))
    examples = tmp_path / "unwanted.jsonl"
    examples.write_bytes(b" ")
    forget = {"like": str(examples), **({} if screen is None else {"screen": screen})}
    limit = {"forget": None, "retain": None, "total": None, "every_section": None}
    dataset = {"kind": "table", "path": str(table), "forget": forget, "limit": limit}
    dataset |= {"sections": {"inference": 1.0}}
    volumes = work.Volumes({"datasets": {"mine": dataset}}, tmp_path)
    assert volumes.all_texts("mine") == pytest.approx(texts, rel=0.02)
