"""Synthetic texts from two known mixtures that overlap, with the exact log-density ratio of each.

Source: drawn here from a seed; see ``data/mixture.py`` for the densities. Forget: drawn from p1.
Retain: drawn from p2. With the default weights 55% of p1 lies on three core components that p2
hardly has, and 45% on five that p2 shares; the sections are ready-made.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mamushi.artifacts.tables import DOMAINS, SECTIONS
from mamushi.data import mixture as model
from mamushi.data.raw import Raw
from mamushi.errors import UserError

SETTINGS = {
    "sizes": {
        "type": "object",
        "default": {
            "contamination": {"forget": 800, "retain": 1600},
            "inference": {"forget": 800, "retain": 1600},
            "evaluation": {"forget": 400, "retain": 400},
        },
        "additionalProperties": {
            "type": "object",
            "properties": {
                "forget": {"type": "integer", "minimum": 1},
                "retain": {"type": "integer", "minimum": 1},
            },
            "required": ["forget", "retain"],
            "additionalProperties": False,
        },
        "description": "Texts of each domain in each section.",
    },
    "vocabulary": {
        "type": "integer",
        "minimum": 10,
        "maximum": 5000,
        "default": 400,
        "description": "Number of pseudo-words.",
    },
    "weights": {
        "type": "object",
        "default": {
            "forget": [0.20, 0.20, 0.15, 0.15, 0.12, 0.09, 0.06, 0.03],
            "retain": [0.005, 0.01, 0.015, 0.08, 0.12, 0.18, 0.26, 0.33],
        },
        "properties": {
            "forget": {"type": "array", "items": {"type": "number", "minimum": 0}},
            "retain": {"type": "array", "items": {"type": "number", "minimum": 0}},
        },
        "required": ["forget", "retain"],
        "additionalProperties": False,
        "description": "Weights of the components in each domain; each list sums to 1.",
    },
    "topic_share": {
        "type": "number",
        "exclusiveMinimum": 0,
        "exclusiveMaximum": 1,
        "default": 0.4,
        "description": "Share of words that come from a component's topic, not the backbone.",
    },
    "words": {
        "type": "array",
        "items": {"type": "integer", "minimum": 1},
        "minItems": 2,
        "maxItems": 2,
        "default": [20, 40],
        "description": "Least and greatest number of words of a text.",
    },
    "seed": {
        "type": "integer",
        "minimum": 0,
        "default": 0,
        "description": "Draws the words, the densities and the texts.",
    },
}
FILES: dict[str, list[str]] = {}
EVALUATION_SECTION = True
"""Brings one of its own."""
SPLIT = False
"""All rows come with a section."""
KNOWS_TRUTH = True
"""Gives the exact log-density ratio of every text, which the selector oracle needs."""


def load(settings: Mapping[str, Any], cache: Path) -> Raw:
    """Draw the texts. Raises ``UserError`` for weights, lengths or sizes that make no sense."""
    weights = _weights(settings["weights"])
    low, high = settings["words"]
    if low > high:
        raise UserError(f"words: {[low, high]}", do="give the smaller number first")
    for section, sizes in settings["sizes"].items():
        if section not in SECTIONS:
            raise UserError(f"sizes: {section!r}", do=f"known are {', '.join(SECTIONS)}")
        if sorted(sizes) != sorted(DOMAINS):
            raise UserError(f"sizes.{section}: {sizes}", do="give forget and retain")
    mixture = model.make(settings["vocabulary"], weights, settings["topic_share"], settings["seed"])
    cells = [
        (section, domain, settings["sizes"][section][domain])
        for section in SECTIONS
        if section in settings["sizes"]
        for domain in DOMAINS
    ]
    drawn = [
        # A stream for each cell: its texts stay the same when the size of another changes.
        model.draw(
            mixture,
            np.full(size, DOMAINS.index(domain)),
            (low, high),
            np.random.default_rng(
                [settings["seed"], 1, SECTIONS.index(section), DOMAINS.index(domain)]
            ),
        )
        for section, domain, size in cells
    ]
    tokens = np.concatenate([texts for texts, _ in drawn])
    return Raw(
        ids=[f"{section}/{domain}/{i:06d}" for section, domain, size in cells for i in range(size)],
        texts=model.spell(mixture, tokens),
        forget=np.repeat([domain == "forget" for _, domain, _ in cells], [n for *_, n in cells]),
        section=[section for section, _, size in cells for _ in range(size)],
        stratum=[domain for _, domain, size in cells for _ in range(size)],
        places=[f"synthetic text {i + 1}" for i in range(len(tokens))],
        labels={"component": np.concatenate([component for _, component in drawn])},
        log_density_ratio=model.log_density_ratio(mixture, tokens),
    )


def _weights(given: Mapping[str, list[float]]) -> NDArray[np.float64]:
    """pi1 and pi2, shape (2, C), checked."""
    lists = [given[domain] for domain in DOMAINS]
    if len({len(one) for one in lists}) != 1:
        raise UserError("weights of different lengths", do="give one for each component")
    weights = np.array(lists, dtype=np.float64)
    if (weights < 0).any() or not np.allclose(weights.sum(axis=1), 1, rtol=0, atol=1e-6):
        raise UserError(f"weights that sum to {weights.sum(axis=1).tolist()}", do="make them 1")
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
