"""What can be told at a glance of a model's folder, before anything opens it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PICKLE_ENDINGS = (".bin", ".pt", ".pth", ".ckpt")
"""Endings of weights that are not opened."""
POSITIONS = ("max_position_embeddings", "n_positions", "max_seq_len")
"""What configurations call the number of a model's positions."""
INDEX = "model.safetensors.index.json"
"""The file that says which tensor is in which file of several."""
MODEL_FILES = (".json", ".model", ".txt", ".jinja", ".safetensors")
"""Endings of the files in a model's folder that are looked at."""


def positions(config: Mapping[str, Any]) -> int | None:
    """Return for how many tokens a model has positions, by its configuration: None where texts may
    be of any length, as with states (Mamba) or distances (ALiBi) in the place of positions."""
    text = config.get("text_config") or config
    lengths = (text.get(name) for name in POSITIONS)
    return next((length for length in lengths if isinstance(length, int)), None)


def positions_of(source: str) -> int | None:
    """Return the same of a model's folder; None where nothing says so."""
    return positions(_read(Path(source).expanduser() / "config.json"))


def _read(path: Path) -> dict[str, Any]:
    """Return the object of a JSON file; an empty one where there is none, or it is damaged."""
    with contextlib.suppress(OSError, ValueError):
        content = json.loads(path.read_bytes())
        return content if isinstance(content, dict) else {}
    return {}


def source_mistake(source: str) -> str | None:
    """Return what tells at a glance that a folder holds no model to be opened."""
    path = Path(source)
    if not path.is_dir():
        return None
    names = [file.name for file in path.iterdir()]
    # Also beside a model: transformers would open the one that the adapters name.
    if "adapter_config.json" in names:
        base = _read(path / "adapter_config.json").get("base_model_name_or_path") or "a model"
        error = f"this folder holds adapters (LoRA) of {base}, and not that model"
        return f"{error}; merge them into it (merge_and_unload of peft), and give what that saves"
    if "config.json" not in names:
        return "this folder holds no model (no config.json); give what save_pretrained wrote"
    if mistake := kind_mistake(_read(path / "config.json")):
        return mistake
    for shard in sorted({*_read(path / INDEX).get("weight_map", {}).values()} - {*names}):
        return f"{shard}: no such file, and {INDEX} names it; download the model again"
    pickled = [name for name in names if name.endswith(PICKLE_ENDINGS)]
    if pickled and not any(name.endswith(".safetensors") for name in names):
        return (
            f"its weights are pickle files ({pickled[0]}), which can run code when they are "
            "opened; if you trust them, open the model with AutoModelForCausalLM.from_pretrained, "
            "and give the folder that its save_pretrained and the tokenizer's write"
        )
    return None


def kind_mistake(config: Mapping[str, Any]) -> str | None:
    """Return what tells by its ``config.json`` that a model is of a kind that cannot be used."""
    if quantized := config.get("quantization_config"):
        method = quantized.get("quant_method") or "of a kind that it does not name"
        return (
            f"its weights are quantised ({method}), which cannot be trained; give the "
            "model that they were made from"
        )
    if config.get("is_encoder_decoder"):
        kind = f"sequence to sequence, {config.get('model_type')}"
        return f"it makes one text of another ({kind}); choose a decoder-only model"
    return None
