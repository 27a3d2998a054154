"""What this room adds to the core: the section ``influence`` of the configuration."""

from collections.abc import Iterator, Mapping
from typing import Any

from mamushi.config.complete import comparisons
from mamushi.config.kinds import Added, Count, Section, key
from mamushi.config.selectors import kind_of
from mamushi.config.sources import is_unlabelled

INFLUENCE_KINDS = ("influence", "token_influence")
"""The selectors that rank by it."""


class Influenced(Section):
    """How the selectors `influence` and `token_influence` measure it: along the training of beta 0,
    which is done again, or at the weights of a model that was contaminated before."""

    points: Count = key(3, "Evenly spaced points of the training; the last is its end.")
    batches: Count = key(
        32, "Of a contaminated model: batches whose squared gradients are Adam's second moment."
    )
    targets: Count = key(
        200,
        "Most texts of each domain whose NLL counts: of the contamination section or, without "
        "one, of either half of the texts the other half.",
    )


def by_influence(config: Mapping[str, Any]) -> list[str]:
    """Return the selectors of a configuration that rank by influence."""
    return [name for name in config["selectors"] if kind_of(config, name).name in INFLUENCE_KINDS]


def check(full: Mapping[str, Any]) -> Iterator[str]:
    """Check that there are weights at which to measure, and labelled texts to be targets."""
    for where, axes in comparisons(full):
        vectors = [model for model in axes["models"] if "embeddings" in full["models"][model]]
        corpora = [name for name in axes["datasets"] if is_unlabelled(full["datasets"][name])]
        for name in sorted({*axes["selectors"]} & {*by_influence(full)}):
            at = f"{where}.selectors: {name!r} is not allowed with"
            if vectors and kind_of(full, name).unit == "texts":
                yield f"{at} models.{vectors[0]}, which has vectors and no weights"
            if corpora:
                yield f"{at} datasets.{corpora[0]}, which nobody labelled"


config = Added({"influence": (Influenced, Influenced())}, check)
