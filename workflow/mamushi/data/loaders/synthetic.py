"""Synthetic texts from two known mixtures that overlap, with the exact log-density ratio of each.

Source: drawn here from a seed; see ``data/mixture.py`` for the densities. Forget: drawn from p1.
Retain: drawn from p2. The sections are ready-made; the densities do not depend on ``sizes``.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from annotated_types import Ge, Le, Len

from mamushi.config.kinds import Count, Fraction, Natural, NotNegative, Section, SectionName, key
from mamushi.io.domains import DOMAINS, FORGET, SECTIONS

if TYPE_CHECKING:
    from mamushi.data.raw import Raw

FILES: dict[str, list[str]] = {}
EVALUATION_SECTION = True
KNOWS_TRUTH = True


Domain = Literal["forget", "retain"]


class Settings(Section):
    """Settings of this dataset."""

    sizes: dict[SectionName, Annotated[dict[Domain, Count], Len(2)]] = key(
        {
            "contamination": {"forget": 800, "retain": 1600},
            "inference": {"forget": 800, "retain": 1600},
            "evaluation": {"forget": 400, "retain": 400},
        },
        "Texts of each domain in each section.",
    )
    vocabulary: Annotated[int, Ge(10), Le(5000)] = key(400, "Number of concepts.")
    synonyms: Annotated[int, Ge(1), Le(100)] = key(
        1, "Pseudo-words of a concept; with many, texts on the same topic hardly share words."
    )
    world: Literal["lexical", "transition"] = key(
        "lexical", "What sets components apart: their vocabulary, or the order of words alone."
    )
    weights: Annotated[dict[Domain, list[NotNegative]], Len(2)] = key(
        {
            "forget": [0.20, 0.20, 0.15, 0.15, 0.12, 0.09, 0.06, 0.03],
            "retain": [0.005, 0.01, 0.015, 0.08, 0.12, 0.18, 0.26, 0.33],
        },
        "Weights of the components in each domain, as shares of their sum.",
    )
    topic_share: Fraction = key(0.4, "Share of words of a component's topic, not the backbone.")
    words: Annotated[list[Count], Len(2, 2)] = key([20, 40], "Fewest and most words of a text.")
    seed: Natural = key(0, "Draws the words, the densities and the texts.")


def load(settings: Mapping[str, Any], cache: Path) -> Raw:
    """Draw the texts."""
    import numpy as np

    from mamushi.data import mixture as model
    from mamushi.data.raw import Raw

    weights = np.array([settings["weights"][domain] for domain in DOMAINS], dtype=np.float64)
    weights /= weights.sum(axis=1, keepdims=True)
    drawn_as = {name: settings[name] for name in ("vocabulary", "topic_share", "world", "synonyms")}
    mixture = model.draw_mixture(weights=weights, seed=settings["seed"], **drawn_as)
    ids, cells, texts, ratios, components = [], [], list[str](), [], []
    for section, domain in product(filter(settings["sizes"].get, SECTIONS), DOMAINS):
        # A stream for each cell: its texts stay the same when the size of another changes.
        number, n = DOMAINS.index(domain), settings["sizes"][section][domain]
        rng = np.random.default_rng([settings["seed"], 1, SECTIONS.index(section), number])
        concepts, component = model.draw(mixture, number, n, tuple(settings["words"]), rng)
        texts += model.spell_texts(mixture, concepts, rng)
        ratios.append(model.log_density_ratio(mixture, concepts))
        components.append(component)
        cells += [(section, domain)] * n
        ids += [f"{section}/{domain}/{i:06d}" for i in range(n)]
    sections, domains = zip(*cells, strict=True)
    return Raw(
        ids=ids,
        texts=texts,
        forget=np.array(domains) == FORGET,
        section=sections,
        stratum=domains,
        places=[f"synthetic text {i + 1}" for i in range(len(texts))],
        labels={"component": np.concatenate(components)},
        log_density_ratio=np.concatenate(ratios),
    )
