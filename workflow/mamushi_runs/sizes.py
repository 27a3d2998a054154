"""How large models and datasets are, before they are opened: from JSON and file sizes alone."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from mamushi.config.kinds import Config
from mamushi.config.sources import raw_size
from mamushi.io import paths
from mamushi.io.files import read_json

TABLE: dict[str, Any] = json.loads(Path(__file__).with_name("sizes.json").read_text("utf-8"))
"""The sizes of public models and datasets."""
BYTES_OF_A_TEXT, BYTES_OF_A_TOKEN = 500, 4.5
"""Of tables that have not been read yet."""
UNKNOWN_TEXTS, UNKNOWN = 10_000, {"forget": 0.2}


class Size(NamedTuple):
    """A decoder-only model's numbers of parameters; ``source`` says where they are from. An output
    head that is tied to the input embedding counts once."""

    parameters: int
    hidden_size: int
    layers: int
    vocabulary_size: int
    tied: bool
    source: str

    @property
    def embedding(self) -> int:
        """Parameters of the input embedding, and as many of the output head."""
        return self.vocabulary_size * self.hidden_size

    @property
    def multiplied(self) -> int:
        """Parameters that every token is multiplied with: all but the rows of an input embedding
        that is no head as well."""
        return self.parameters - (0 if self.tied else self.embedding)

    def blocks(self, count: int) -> int:
        """Return the parameters of so many transformer blocks, at most all: what is neither
        embedding nor head."""
        return min(count, self.layers) * (self.multiplied - self.embedding) // self.layers

    def trained(self, training: Mapping[str, Any]) -> int:
        """Return how many ``training`` trains; see ``mamushi.lm.parameters.freeze``."""
        if training["method"] == "full":
            return self.parameters
        if training["method"] == "lora":
            # Beside each matrix its height and width times the rank: 22 widths of a usual block.
            return 22 * int(training["lora"]["rank"]) * self.layers * self.hidden_size
        ends = int(training["train_input_embedding"]) + int(training["train_output_head"])
        ends = min(ends, 1) if self.tied else ends
        return self.blocks(training["trained_blocks"]) + ends * self.embedding


def model_size(config: Config, model: str) -> Size:
    """Return the size of a configured model, from the first of these that there is: a tiny model's
    definition, its card, the weights in its folder, what is published of it, a number in its name
    ("-7b"), 8 billion. ``source`` says which."""
    definition = config["models"][model]
    if definition.get("family") is not None:
        blocks = 12 * definition["layers"] * definition["hidden_size"] ** 2
        ends = 2 * definition["vocabulary_size"] * definition["hidden_size"]
        return _like(blocks + ends, "its definition")
    if "embeddings" in definition:
        return _like(3e8, "assumed to be as wide as vectors of sentence encoders are")
    card = Path(paths.MODEL_CARD.format(model=model))
    if card.is_file():
        facts = read_json(card) | {"source": "its card"}
        return Size(**{name: facts[name] for name in Size._fields})
    source = Path(definition["source"] or "nowhere")
    if weights := sum(path.stat().st_size for path in source.glob("model*.safetensors")):
        return _like(weights / 2, "its weights, if they are of 16 bits")
    if published := TABLE["models"].get(source.name.lower()):
        return Size(*[*published, "published sizes"])
    word = r"(?<![a-z0-9.])(?:(\d+)x)?(\d+(?:\.\d+)?)([bm])(?![a-z0-9])"
    if match := re.search(word, f"{source.name} {model}".lower()):
        unit = 1e9 if match[3] == "b" else 1e6
        return _like(int(match[1] or 1) * float(match[2]) * unit, f'"{match[0]}" in its name')
    return _like(8e9, "assumed to have 8 billion parameters")


def _like(parameters: float, source: str) -> Size:
    """Return a model of so many parameters, shaped as Llama 3.1 is: width and depth grow alike.
    Small ones have tied embeddings, as most have that are published."""
    scale = (parameters / 8.03e9) ** (1 / 3)
    hidden, layers = max(64, round(4096 * scale)), max(1, round(32 * scale))
    vocabulary = min(128256, int(parameters / 4 / hidden))
    return Size(int(parameters), hidden, layers, vocabulary, parameters < 4e9, source)


def expected_texts(config: Config, dataset: str) -> Mapping[str, Mapping[str, float]]:
    """Return the texts of a dataset by section and domain: as its card counts them, else from its
    sizes, what is published of it, or how large its files are."""
    definition, card = config["datasets"][dataset], Path(paths.DATA_CARD.format(dataset=dataset))
    if card.is_file():
        return dict(read_json(card)["counts"]["sections"])
    if definition.get("sizes"):
        return dict(definition["sizes"])
    about = UNKNOWN | TABLE["datasets"].get(definition["kind"], {})
    total = about.get("texts") or raw_size(definition) / BYTES_OF_A_TEXT or UNKNOWN_TEXTS
    shares = {"forget": about["forget"], "retain": 1 - about["forget"]}
    texts = {
        section: {domain: total * share * of_all for domain, of_all in shares.items()}
        for section, share in definition["sections"].items()
    }
    return texts | ({"evaluation": about["evaluation"]} if "evaluation" in about else {})


def mean_tokens(config: Config, dataset: str, cut: float) -> float:
    """Return the mean tokens of a text that is cut at ``cut``."""
    definition = config["datasets"][dataset]
    if published := TABLE["datasets"].get(definition["kind"]):
        return min(cut, float(published["tokens"]))
    texts = sum(sum(section.values()) for section in expected_texts(config, dataset).values())
    return min(cut, (raw_size(definition) / texts or BYTES_OF_A_TEXT) / BYTES_OF_A_TOKEN)
