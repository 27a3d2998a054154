"""How large a model is, before it is opened: from JSON and file sizes alone.

Memory, time limits and the plan depend on it, and a dry run knows models that are not there yet.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mamushi.artifacts import paths
from mamushi.configuration import grid
from mamushi.configuration.grid import Config
from mamushi.configuration.sources import is_gguf
from mamushi_runs.forecast.rates import TABLE

BYTES = {"float32": 4, "bfloat16": 2, "float16": 2, "float8_e4m3fn": 1}


@dataclass(frozen=True)
class Size:
    """Numbers of parameters of a decoder-only model, and the sizes behind them."""

    parameters: int
    """All of them; a head that is tied to the input embedding counts once."""
    hidden_size: int
    layers: int
    vocabulary_size: int
    tied: bool
    source: str
    """Where this is from, for people."""

    @property
    def billions(self) -> float:
        return self.parameters / 1e9

    @property
    def embedding(self) -> int:
        """Parameters of the input embedding, and as many of the output head."""
        return self.vocabulary_size * self.hidden_size

    @property
    def block(self) -> int:
        """Parameters of one transformer block: what is neither embedding, head nor final norm."""
        tables = self.embedding * (1 if self.tied else 2)
        return max(0, self.parameters - tables - self.hidden_size) // self.layers

    @property
    def multiplied(self) -> int:
        """Parameters that every token is multiplied with: all but the input embedding, whose rows
        are looked up. A tied one is multiplied with, as the head."""
        return self.parameters - (0 if self.tied else self.embedding)

    def adapters(self, training: Mapping[str, Any]) -> int:
        """Return parameters of low-rank adapters beside all matrices of the blocks: the rank times
        the sum of each one's height and width. Four square ones make up attention, and three of the
        rest of a block the MLP; grouped keys and a choice of layers have less."""
        hidden = self.hidden_size
        wide = max(0, self.block - 4 * hidden**2) // (3 * hidden)
        around = 4 * 2 * hidden + 3 * (hidden + wide)
        return int(training["lora"]["rank"]) * self.layers * around

    def trained(self, training: Mapping[str, Any]) -> int:
        """Return how many ``training`` trains; see ``mamushi.lm.parameters.trained_names``."""
        if training["method"] == "full":
            return self.parameters
        if training["method"] == "lora":
            return self.adapters(training)
        count = min(int(training["trained_blocks"]), self.layers) * self.block
        inputs, head = training["train_input_embedding"], training["train_output_head"]
        tables = int(inputs or head) if self.tied else int(inputs) + int(head)
        norm = self.hidden_size if training["train_final_norm"] else 0
        return count + tables * self.embedding + norm


def of(config: Config, model: str, root: str | os.PathLike[str] = ".") -> Size:
    """Return the size of a configured model; ``root`` is the folder with ``results``.

    From the first of these that there is: a tiny model's definition, its card, the weights in its
    folder, the published sizes of the paper's models, a number in its name ("-7b"), the size of its
    GGUF file. What is none of these is taken for 8 billion, and ``source`` says so.
    """
    definition = config["models"][model]
    if definition.get("family") is not None:
        return _tiny(definition)
    if grid.no_language_model(config, model):
        return _like(3e8, "assumed to be as wide as vectors of sentence encoders are")
    source = str(definition.get("source") or "")
    return (
        _from_card(Path(root, paths.MODEL_CARD.format(model=model)))
        or (_from_folder(Path(source)) if source else None)
        or _from_name(source, model)
        or (_from_gguf(Path(source)) if is_gguf(definition) else None)
        or _like(8e9, "assumed to have 8 billion parameters")
    )


def _tiny(given: Mapping[str, Any]) -> Size:
    """Return a model of ``mamushi.lm.tiny``, with gated MLPs and grouped queries; biases and norms,
    a thousandth, are left out."""
    hidden, layers, vocabulary = (given[x] for x in ("hidden_size", "layers", "vocabulary_size"))
    grouped = given["key_value_heads"] / given["heads"]
    block = int(2 * hidden**2 * (1 + grouped)) + 3 * hidden * given["intermediate_size"]
    tied = given["family"] != "llama"
    total = layers * block + vocabulary * hidden * (1 if tied else 2) + hidden
    return Size(total, hidden, layers, vocabulary, tied, "its definition")


def _json(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file; empty without one, since a plan must not fail on what a job
    will complain about in better words."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _from_card(path: Path) -> Size | None:
    card = _json(path)
    names = ("parameters", "hidden_size", "layers", "vocabulary_size")
    if not all(isinstance(card.get(name), int) for name in names):
        return None
    parameters, hidden, layers, vocabulary = (card[name] for name in names)
    return Size(parameters, hidden, layers, vocabulary, bool(card.get("tied")), "its card")


def _from_folder(folder: Path) -> Size | None:
    """Return a size by that of the weights; their shape is known when a job has opened them."""
    index = _json(folder / "model.safetensors.index.json")
    names = set(index.get("weight_map", {}).values()) or {"model.safetensors"}
    try:
        weights = sum((folder / name).stat().st_size for name in names)
    except OSError:
        return None
    config = _json(folder / "config.json")
    kind = str(config.get("dtype") or config.get("torch_dtype"))
    return _like(weights / BYTES.get(kind, 4), "its weights")


def _from_gguf(path: Path) -> Size | None:
    """Return a size by that of the file, at the bits a weight of "Q4_1" or "F16" in its name; else
    at 4."""
    bits = re.search(r"(?<![a-z])(?:i?q|b?f)(\d+)", path.stem.lower())
    try:
        return _like(path.stat().st_size * 8 / int(bits[1] if bits else 4), "its GGUF file")
    except OSError:
        return None


def _from_name(source: str, model: str) -> Size | None:
    """Return a published size; else that of "7b", "360m" or "8x7b" as a word of a name."""
    names = source.rpartition("/")[2].lower(), model.lower()
    for name in names:
        # An instruction-tuned version is as large, and so is `qwen-2.5-7b`.
        plain = name.replace("qwen-", "qwen").removesuffix("-instruct").removesuffix("-it")
        if plain in TABLE["models"]:
            parameters, hidden, layers, vocabulary, tied = TABLE["models"][plain]
            source = f"published sizes of {plain}"
            return Size(parameters, hidden, layers, vocabulary, tied, source)
    for name in names:
        found = re.search(r"(?<![a-z0-9.])(?:(\d+)x)?(\d+(?:\.\d+)?)([bm])(?![a-z0-9])", name)
        total = found and int(found[1] or 1) * float(found[2]) * (1e9 if found[3] == "b" else 1e6)
        if found and total:
            return _like(total, f'"{found[0]}" in its name')
    return None


def _like(parameters: float, source: str) -> Size:
    """Return a model of so many parameters, shaped as Llama 3.1 is: width and depth grow alike.
    Small ones have tied embeddings, as most have that are published."""
    scale = (parameters / 8.03e9) ** (1 / 3)
    hidden = max(64, round(4096 * scale / 64) * 64)
    vocabulary = max(1, min(128256, int(parameters / 4 / hidden)))
    return Size(
        int(parameters), hidden, max(1, round(32 * scale)), vocabulary, parameters < 4e9, source
    )
