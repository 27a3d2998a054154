"""Synthetic texts from two known mixtures that overlap, with the exact log-density ratio of each.

Source: drawn here from a seed; see ``data/mixture.py`` for the densities. Forget: drawn from p1.
Retain: drawn from p2. The sections are ready-made; the densities do not depend on ``sizes``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from annotated_types import Ge, Le, Len
from pydantic import Field

from mamushi.config.kinds import (
    Count,
    Fraction,
    Natural,
    NotNegative,
    Portion,
    Section,
    SectionName,
    key,
)
from mamushi.io.domains import DOMAINS, EVALUATION, SECTIONS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mamushi.data.raw import Raw

FILES: dict[str, list[str]] = {}
EVALUATION_SECTION = True
SPLIT = False
KNOWS_TRUTH = True


class Sizes(Section):
    """Texts of each domain."""

    forget: Count
    retain: Count


class Weights(Section):
    """Weights of the components in each domain, as shares of their sum."""

    forget: list[NotNegative]
    retain: list[NotNegative]


class Noise(Section):
    """Shares of the texts labelled retain that are drawn from the forget density, and the other way
    round, in all sections but evaluation. The label true_domain then says which they are."""

    forget_in_retain: Portion = Field(description="Of the texts labelled retain.")
    retain_in_forget: Portion = Field(description="Of the texts labelled forget.")


class Settings(Section):
    """Settings of this dataset."""

    sizes: dict[SectionName, Sizes] = key(
        {
            "contamination": Sizes(forget=800, retain=1600),
            "inference": Sizes(forget=800, retain=1600),
            "evaluation": Sizes(forget=400, retain=400),
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
    weights: Weights = Weights(
        forget=[0.20, 0.20, 0.15, 0.15, 0.12, 0.09, 0.06, 0.03],
        retain=[0.005, 0.01, 0.015, 0.08, 0.12, 0.18, 0.26, 0.33],
    )
    topic_share: Fraction = key(0.4, "Share of words of a component's topic, not the backbone.")
    words: Annotated[list[Count], Len(2, 2)] = key([20, 40], "Fewest and most words of a text.")
    lengths: Literal["uniform", "log_uniform"] = key("uniform", "How they spread between the two.")
    noise: Noise = Noise(forget_in_retain=0.0, retain_in_forget=0.0)
    seed: Natural = key(0, "Draws the words, the densities and the texts.")


def load(settings: Mapping[str, Any], cache: Path) -> Raw:
    """Draw the texts."""
    import numpy as np

    from mamushi.data import mixture as model
    from mamushi.data.raw import Raw

    weights = np.array([settings["weights"][domain] for domain in DOMAINS], dtype=np.float64)
    weights /= weights.sum(axis=1, keepdims=True)
    low, high = settings["words"]
    mixture = model.make(
        settings["vocabulary"],
        weights,
        settings["topic_share"],
        settings["seed"],
        world=settings["world"],
        synonyms=settings["synonyms"],
    )
    cells = [
        (section, domain, settings["sizes"][section][domain])
        for section in SECTIONS
        if section in settings["sizes"]
        for domain in DOMAINS
    ]
    drawn_from = [_domains(settings, *cell) for cell in cells]
    texts, ratios, components = list[str](), [], []
    for (section, domain, _), domains in zip(cells, drawn_from, strict=True):
        # A stream for each cell: its texts stay the same when the size of another changes.
        rng = np.random.default_rng(
            [settings["seed"], 1, SECTIONS.index(section), DOMAINS.index(domain)]
        )
        concepts, component = model.draw(
            mixture, domains, (low, high), rng, log_uniform=settings["lengths"] == "log_uniform"
        )
        texts += model.spell(mixture, concepts, rng)
        ratios.append(model.log_density_ratio(mixture, concepts))
        components.append(component)
    labels = {"component": np.concatenate(components)}
    if any(settings["noise"].values()):
        labels["true_domain"] = np.array(DOMAINS)[np.concatenate(drawn_from)]
    return Raw(
        ids=[f"{name}/{domain}/{i:06d}" for name, domain, n in cells for i in range(n)],
        texts=texts,
        forget=np.repeat([domain == "forget" for _, domain, _ in cells], [n for *_, n in cells]),
        section=[section for section, _, size in cells for _ in range(size)],
        stratum=[domain for _, domain, size in cells for _ in range(size)],
        places=[f"synthetic text {i + 1}" for i in range(len(texts))],
        labels=labels,
        log_density_ratio=np.concatenate(ratios),
    )


def _domains(
    settings: Mapping[str, Any], section: str, domain: str, size: int
) -> NDArray[np.int64]:
    """Return the domain from whose density each text of a cell is drawn, (size,)."""
    import numpy as np

    number = DOMAINS.index(domain)
    rival = DOMAINS[1 - number]
    drawn = np.full(size, number)
    if section != EVALUATION:
        wrong = round(size * settings["noise"][f"{rival}_in_{domain}"])
        rng = np.random.default_rng([settings["seed"], 2, SECTIONS.index(section), number])
        drawn[rng.permutation(size)[:wrong]] = 1 - number
    return drawn
