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
from mamushi.configuration.grid import Config

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

    def trained(self, training: Mapping[str, Any]) -> int:
        """Parameters that ``training`` trains; see ``mamushi.lm.parameters.trained_names``."""
        count = min(int(training["trained_blocks"]), self.layers) * self.block
        inputs, head = training["train_input_embedding"], training["train_output_head"]
        tables = int(inputs or head) if self.tied else int(inputs) + int(head)
        norm = self.hidden_size if training["train_final_norm"] else 0
        return count + tables * self.embedding + norm


def of(config: Config, model: str, root: str | os.PathLike[str] = ".") -> Size:
    """The size of a configured model; ``root`` is the folder with ``results``.

    From the first of these that there is: a tiny model's definition, its card, the config.json of
    its folder, the published sizes of the paper's models, a number in its name ("-7b"). What is
    none of these is taken for 8 billion, and ``source`` says so.
    """
    definition = config["models"][model]
    if definition.get("family") is not None:
        return _tiny(definition)
    source = str(definition.get("source") or "")
    return (
        _from_card(Path(root, paths.MODEL_CARD.format(model=model)))
        or _from_folder(Path(source) if source else None)
        or _published(source, model)
        or _named(model, source)
        or _like(8e9, "assumed to have 8 billion parameters")
    )


def transformer(
    *,
    hidden_size: int,
    layers: int,
    heads: int,
    key_value_heads: int,
    head_width: int,
    intermediate_size: int,
    vocabulary_size: int,
    tied: bool,
    source: str,
    norms: int = 2,
    biases: bool = False,
) -> Size:
    """A decoder with gated MLPs and grouped queries: Llama, Qwen and Gemma are of this kind.

    ``norms`` are those of a block; ``biases`` stand on queries, keys and values.
    """
    queries, keys = heads * head_width, key_value_heads * head_width
    attention = 2 * hidden_size * queries + 2 * hidden_size * keys
    bias = queries + 2 * keys if biases else 0
    block = attention + bias + 3 * hidden_size * intermediate_size + norms * hidden_size
    tables = vocabulary_size * hidden_size * (1 if tied else 2)
    total = layers * block + tables + hidden_size
    return Size(total, hidden_size, layers, vocabulary_size, tied, source)


def _tiny(definition: Mapping[str, Any]) -> Size:
    """A model of ``mamushi.lm.tiny``."""
    family = definition["family"]
    return transformer(
        hidden_size=definition["hidden_size"],
        layers=definition["layers"],
        heads=definition["heads"],
        key_value_heads=definition["key_value_heads"],
        head_width=definition["hidden_size"] // definition["heads"],
        intermediate_size=definition["intermediate_size"],
        vocabulary_size=definition["vocabulary_size"],
        tied=family != "llama",
        source="its definition",
        norms=4 if family == "gemma2" else 2,
        biases=family == "qwen2",
    )


def _json(path: Path) -> dict[str, Any] | None:
    """The object in a JSON file; None without one, since a plan must not fail on what a job will
    complain about in better words."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _from_card(path: Path) -> Size | None:
    card = _json(path)
    names = ("parameters", "hidden_size", "layers", "vocabulary_size")
    if card is None or not all(isinstance(card.get(name), int) for name in names):
        return None
    parameters, hidden, layers, vocabulary = (int(card[name]) for name in names)
    return Size(parameters, hidden, layers, vocabulary, bool(card.get("tied")), "its card")


def _from_folder(folder: Path | None) -> Size | None:
    config = _json(folder / "config.json") if folder is not None else None
    if folder is None or config is None:
        return None
    text = config.get("text_config")
    inner = {**config, **text} if isinstance(text, dict) else config

    def first(*names: str) -> int | None:
        return next((inner[name] for name in names if isinstance(inner.get(name), int)), None)

    hidden = first("hidden_size", "n_embd", "d_model")
    layers = first("num_hidden_layers", "n_layer")
    vocabulary = first("vocab_size")
    if not hidden or not layers or not vocabulary:
        return None
    kind = str(inner.get("model_type", ""))
    # Not written down where it is the architecture's default.
    tied = bool(inner.get("tie_word_embeddings", kind.startswith(("gemma", "gpt2", "opt"))))
    heads = first("num_attention_heads", "n_head") or 1
    sketch = transformer(
        hidden_size=hidden,
        layers=layers,
        heads=heads,
        key_value_heads=first("num_key_value_heads") or heads,
        head_width=first("head_dim") or hidden // heads,
        # Without a gate, two matrices of 4 h each: as many weights as three of 8/3 h.
        intermediate_size=first("intermediate_size") or 8 * hidden // 3,
        vocabulary_size=vocabulary,
        tied=tied,
        source="config.json",
    )
    width = BYTES.get(str(inner.get("dtype") or inner.get("torch_dtype")))
    weights = _weights(folder)
    if not width or not weights:
        return sketch
    # Whatever the architecture: its weights are what has to be read.
    return Size(weights // width, hidden, layers, vocabulary, tied, "config.json and weights")


def _weights(folder: Path) -> int:
    """Bytes of the safetensors files that a model is opened from; 0 where they are not there."""
    index = _json(folder / "model.safetensors.index.json")
    names = set((index or {}).get("weight_map", {}).values()) or {"model.safetensors"}
    try:
        return sum((folder / name).stat().st_size for name in names)
    except OSError:
        return 0


# hidden, layers, heads, key-value heads, head width, intermediate, vocabulary, tied, norms, biases
PUBLISHED: dict[str, tuple[int, int, int, int, int, int, int, bool, int, bool]] = {
    "llama-3.1-8b": (4096, 32, 32, 8, 128, 14336, 128256, False, 2, False),
    "qwen2.5-7b": (3584, 28, 28, 4, 128, 18944, 152064, False, 2, True),
    "gemma-2-2b": (2304, 26, 8, 4, 256, 9216, 256000, True, 4, False),
}
"""The paper's models, by the last part of their ids on the hub, in small letters."""


def _published(source: str, model: str) -> Size | None:
    for name in (source.rpartition("/")[2].lower(), model.lower()):
        # An instruction-tuned version is as large, and so is `qwen-2.5-7b`.
        plain = name.replace("qwen-", "qwen").removesuffix("-instruct").removesuffix("-it")
        if plain in PUBLISHED:
            h, n, heads, kv, width, inner, vocabulary, tied, norms, biases = PUBLISHED[plain]
            return transformer(
                hidden_size=h,
                layers=n,
                heads=heads,
                key_value_heads=kv,
                head_width=width,
                intermediate_size=inner,
                vocabulary_size=vocabulary,
                tied=tied,
                source=f"published sizes of {plain}",
                norms=norms,
                biases=biases,
            )
    return None


def _named(*names: str) -> Size | None:
    """From "7b", "360m" or "8x7b" in a name, as a word of its own."""
    number = re.compile(r"(?<![a-z0-9.])(?:(\d+)x)?(\d+(?:\.\d+)?)([bm])(?![a-z0-9])")
    for name in names:
        found = number.search(name.lower())
        if found:
            unit = 1e9 if found[3] == "b" else 1e6
            total = int(found[1] or 1) * float(found[2]) * unit
            if total > 0:
                return _like(total, f'"{found[0]}" in its name')
    return None


def _like(parameters: float, source: str) -> Size:
    """A model of so many parameters, shaped as Llama 3.1 is: width and depth grow alike. Small
    ones have tied embeddings, as most have that are published."""
    scale = (parameters / 8.03e9) ** (1 / 3)
    hidden = max(64, round(4096 * scale / 64) * 64)
    vocabulary = min(128256, int(parameters / 4 / hidden))
    layers = max(1, round(32 * scale))
    return Size(int(parameters), hidden, layers, max(1, vocabulary), parameters < 4e9, source)
