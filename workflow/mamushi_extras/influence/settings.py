"""What this room adds to the configuration: the section ``influence``, and what it checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mamushi.config.checks import comparisons
from mamushi.config.kinds import Count, NotNegative, Positive, Section
from mamushi.config.selectors import kind_of
from mamushi.config.sources import unlabelled
from mamushi.registry import plugin

INFLUENCE_KINDS = ("influence", "token_influence")
"""The selectors that rank by it."""


class Influenced(Section):
    """How the influence of texts and tokens on other texts is measured, for the selectors
    `influence` and `token_influence`: along the training of beta 0, which is done again."""

    #: Points of the training at which is measured, evenly spaced; the last is its end.
    points: Count = 3
    #: Most texts of each domain, of the contamination section, whose NLL is what counts.
    targets: Count = 200
    #: What influence on retain texts takes off that on forget texts; 0 looks at forget texts alone.
    less: NotNegative = 1.0
    #: Length of the step over which losses are compared, as a share of that of the trained weights;
    #: null for 0.0003 where training is in fp32, and 0.003 in bf16.
    eps: Positive | None = None


def by_influence(config: Mapping[str, Any]) -> list[str]:
    """Return the selectors of a configuration that rank by influence."""
    return [name for name in config["selectors"] if kind_of(config, name).name in INFLUENCE_KINDS]


def check_influence(full: Mapping[str, Any]) -> Iterator[str]:
    """Check that there is a training along which to measure, and a contamination section."""
    names = by_influence(full)
    for where, axes in comparisons(full):
        ranked = [name for name in axes["selectors"] if name in names]
        for name in ranked:
            at = f"{where}.selectors[{axes['selectors'].index(name)}]: {name!r} is not allowed with"
            for model in axes["models"]:
                if full["models"][model]["contaminated"]:
                    yield (
                        f"{at} the model {model!r}, which was contaminated before, so that no "
                        "texts are set apart as targets; name the model that it was trained from"
                    )
            for dataset in axes["datasets"]:
                definition = full["datasets"][dataset]
                if unlabelled(definition):
                    yield f"{at} the dataset {dataset!r}, which nobody labelled"
                elif plugin("dataset", definition["kind"]).split and not definition["sections"].get(
                    "contamination"
                ):
                    yield (
                        f"{at} the dataset {dataset!r}: its contamination section, whose texts "
                        "are the targets, is empty; give it a share above 0"
                    )
