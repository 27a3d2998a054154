"""How large models and datasets are, before they are opened: from JSON and file sizes alone.

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

from mamushi.config import grid
from mamushi.config.kinds import Config
from mamushi.config.sources import raw_size
from mamushi.io import paths

TABLE: dict[str, Any] = json.loads(Path(__file__).with_name("rates.json").read_text("utf-8"))
"""What is known beforehand: how fast GPUs and a processor are, and the sizes of public models and
datasets."""

STATE_BYTES = 12
"""Of a checkpoint per trained parameter: its value and two moments, in fp32."""
BYTES_OF_A_TEXT = 500
"""Of a table of texts that has not been read yet."""
UNKNOWN_TEXTS, UNKNOWN_FORGET = 10_000, 0.2


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
        outside = self.embedding * (1 if self.tied else 2) + self.hidden_size
        return max(0, self.parameters - outside) // self.layers

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
        return int(training["lora"]["rank"]) * self.layers * (8 * hidden + 3 * (hidden + wide))

    def trained(self, training: Mapping[str, Any]) -> int:
        """Return how many ``training`` trains; see ``mamushi.lm.parameters.freeze``."""
        if training["method"] == "full":
            return self.parameters
        if training["method"] == "lora":
            return self.adapters(training)
        count = min(int(training["trained_blocks"]), self.layers) * self.block
        inputs, head = training["train_input_embedding"], training["train_output_head"]
        return count + self.embedding * (
            int(inputs or head) if self.tied else int(inputs) + int(head)
        )


def of(config: Config, model: str, root: str | os.PathLike[str] = ".") -> Size:
    """Return the size of a configured model; ``root`` is the folder with ``results``. From the
    first of these that there is: a tiny model's definition, its card, the weights in its folder,
    the published sizes of the paper's models, a number in its name ("-7b"). What is
    none of these is taken for 8 billion, and ``source`` says so."""
    definition = config["models"][model]
    if definition.get("family") is not None:
        return _tiny(definition)
    if grid.no_language_model(config, model):
        return _like(3e8, "assumed to be as wide as vectors of sentence encoders are")
    source = str(definition.get("source") or "")
    card = _json(Path(root, paths.MODEL_CARD.format(model=model)))
    names = ("parameters", "hidden_size", "layers", "vocabulary_size")
    if all(isinstance(card.get(name), int) for name in names):
        parameters, hidden, layers, vocabulary = (card[name] for name in names)
        return Size(parameters, hidden, layers, vocabulary, bool(card.get("tied")), "its card")
    weights = _from_files(Path(source)) if source else None
    return (
        weights or _from_name(source, model) or _like(8e9, "assumed to have 8 billion parameters")
    )


def _tiny(definition: Mapping[str, Any]) -> Size:
    """Return a model of ``mamushi.lm.tiny``, with gated MLPs and grouped queries; biases and norms,
    a thousandth, are left out."""
    hidden, layers, vocabulary = (
        definition[name] for name in ("hidden_size", "layers", "vocabulary_size")
    )
    grouped = definition["key_value_heads"] / definition["heads"]
    block = int(2 * hidden**2 * (1 + grouped)) + 3 * hidden * definition["intermediate_size"]
    tied = definition["family"] != "llama"
    total = layers * block + vocabulary * hidden * (1 if tied else 2) + hidden
    return Size(total, hidden, layers, vocabulary, tied, "its definition")


def _json(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file; empty without one, since a plan must not fail on what a job
    will complain about in better words."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _from_files(source: Path) -> Size | None:
    """Return a size by that of the weights; their shape is known when a job has opened them."""
    index = _json(source / "model.safetensors.index.json")
    names = set(index.get("weight_map", {}).values()) or {"model.safetensors"}
    config = _json(source / "config.json")
    half = str(config.get("dtype") or config.get("torch_dtype")).endswith("float16")
    try:
        size = sum((source / name).stat().st_size for name in names)
        return _like(size / (2 if half else 4), "its weights")
    except OSError:
        return None


def _from_name(source: str, model: str) -> Size | None:
    """Return a published size; else that of "7b", "360m" or "8x7b" as a word of a name."""
    names = source.rpartition("/")[2].lower(), model.lower()
    for name in names:
        # An instruction-tuned version is as large, and so is `qwen-2.5-7b`.
        plain = name.replace("qwen-", "qwen").removesuffix("-instruct").removesuffix("-it")
        if plain in TABLE["models"]:
            numbers: list[Any] = TABLE["models"][plain]
            return Size(*[*numbers, f"published sizes of {plain}"])
    for name in names:
        match = re.search(r"(?<![a-z0-9.])(?:(\d+)x)?(\d+(?:\.\d+)?)([bm])(?![a-z0-9])", name)
        unit = 1e9 if match and match[3] == "b" else 1e6
        if match and (total := int(match[1] or 1) * float(match[2]) * unit):
            return _like(total, f'"{match[0]}" in its name')
    return None


def _like(parameters: float, source: str) -> Size:
    """Return a model of so many parameters, shaped as Llama 3.1 is: width and depth grow alike.
    Small ones have tied embeddings, as most have that are published."""
    scale = (parameters / 8.03e9) ** (1 / 3)
    hidden = max(64, round(4096 * scale / 64) * 64)
    vocabulary, layers = min(128256, int(parameters / 4 / hidden)), max(1, round(32 * scale))
    return Size(int(parameters), hidden, layers, max(1, vocabulary), parameters < 4e9, source)


def counted(dataset: str, root: Path = Path()) -> dict[str, dict[str, int]] | None:
    """Return the texts of a dataset by section and domain; None until they are counted. Snakemake
    asks for a job's resources again when it starts, and then they are."""
    card = _json(root / paths.DATA_CARD.format(dataset=dataset))
    return card["counts"]["sections"] if card else None


def expected_texts(
    config: Mapping[str, Any], dataset: str, root: Path = Path()
) -> dict[str, dict[str, float]]:
    """Return the texts of a dataset by section and domain: as counted, else from its sizes, what is
    published of it, or how large its files are."""
    if (sections := counted(dataset, root)) is not None:
        return {name: dict(counts) for name, counts in sections.items()}
    definition = config["datasets"][dataset]
    if "sizes" in definition:
        return dict(definition["sizes"])
    published = TABLE["datasets"].get(definition["kind"], {})
    total = published.get("texts", 0)
    total = total or raw_size(definition) / BYTES_OF_A_TEXT or UNKNOWN_TEXTS
    if definition["kind"] == "table" and (screen := definition["forget"].get("screen")):
        # What a screen leaves out is not embedded.
        total = min(total, screen if screen >= 1 else screen * total)
    forget, limit = published.get("forget", UNKNOWN_FORGET), definition["limit"]
    shares = {"forget": forget, "retain": 1 - forget}
    texts = {
        section: {domain: total * part * share for domain, share in shares.items()}
        for section, part in definition["sections"].items()
    } | ({"evaluation": published["evaluation"]} if "evaluation" in published else {})
    return {
        section: {domain: min(n, limit.get(domain) or n) for domain, n in counts.items()}
        for section, counts in texts.items()
    }
