"""What can be told at a glance of a model's folder, before anything opens it."""

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

INDEX = "model.safetensors.index.json"
"""The file that says which tensor is in which file of several."""
MODEL_FILES = (".json", ".model", ".txt", ".jinja", ".safetensors")
"""Endings of the files in a model's folder that are looked at."""


def positions(config: Mapping[str, Any]) -> int | None:
    """Return for how many tokens a model has positions, by its configuration: None where texts may
    be of any length, as with states (Mamba) or distances (ALiBi) in the place of positions."""
    text = config.get("text_config") or config
    names = ("max_position_embeddings", "n_positions", "max_seq_len")
    return next((text[name] for name in names if isinstance(text.get(name), int)), None)


def read_config(folder: str | Path) -> dict[str, Any]:
    """Return the configuration of a model's folder; empty where there is none, or it is damaged."""
    with contextlib.suppress(OSError, ValueError):
        content = json.loads(Path(folder, "config.json").read_bytes())
        return content if isinstance(content, dict) else {}
    return {}


def source_mistake(source: str) -> str | None:
    """Return what tells at a glance that a folder holds no model to be opened."""
    path = Path(source)
    names = [file.name for file in path.iterdir()] if path.is_dir() else ["config.json"]
    # Also beside a model: transformers would open the one that the adapters name.
    if "adapter_config.json" in names:
        return "holds adapters (LoRA) and not the model; merge them into it by peft, and save that"
    if "config.json" not in names:
        return "this folder holds no model (no config.json); give what save_pretrained wrote"
    if "quantization_config" in read_config(path):
        return "its weights are quantised, and cannot be trained; give those they were made from"
    pickled = [name for name in names if name.endswith((".bin", ".pt", ".pth", ".ckpt"))]
    if pickled and not any(name.endswith(".safetensors") for name in names):
        why = "which can run code when they are opened; save them again with save_pretrained"
        return f"its weights are pickle files ({pickled[0]}), {why}"
    return None
