"""What this room adds to the core: the section ``influence``, and what it checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mamushi.config.checks import comparisons
from mamushi.config.kinds import Count, Section
from mamushi.config.selectors import kind_of
from mamushi.config.sources import unlabelled

INFLUENCE_KINDS = ("influence", "token_influence")
"""The selectors that rank by it."""


class Influenced(Section):
    """How the influence of texts and tokens on other texts is measured, for the selectors
    `influence` and `token_influence`: along the training of beta 0, which is done again, or at the
    weights of a model that was contaminated before."""

    #: Points of the training at which is measured, evenly spaced; the last is its end.
    points: Count = 3
    #: Of a model that was contaminated before: batches of `training` whose squared gradients stand
    #: for Adam's second moment.
    batches: Count = 32
    #: Most texts of each domain whose NLL is what counts: of the contamination section or, of a
    #: model that was contaminated before, without one, of either half of the texts the other half.
    targets: Count = 200


def config_sections() -> dict[str, type[Any]]:
    """Return the further sections of the configuration."""
    return {"influence": Influenced}


def by_influence(config: Mapping[str, Any]) -> list[str]:
    """Return the selectors of a configuration that rank by influence."""
    return [name for name in config["selectors"] if kind_of(config, name).name in INFLUENCE_KINDS]


def config_checks(full: Mapping[str, Any]) -> Iterator[str]:
    """Check that there are weights at which to measure, and labelled texts to be targets."""
    names = by_influence(full)
    for where, axes in comparisons(full):
        vectors = [model for model in axes["models"] if "embeddings" in full["models"][model]]
        corpora = [name for name in axes["datasets"] if unlabelled(full["datasets"][name])]
        for place, name in enumerate(axes["selectors"]):
            at = f"{where}.selectors[{place}]: {name!r} is not allowed with"
            if name in names and vectors and kind_of(full, name).unit == "texts":
                yield f"{at} models.{vectors[0]}, which has vectors and no weights"
            if name in names and corpora:
                yield f"{at} datasets.{corpora[0]}, which nobody labelled"
