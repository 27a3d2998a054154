"""What this room adds to the configuration: the section ``left``, and texts that are planted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mamushi.config.checks import models_used
from mamushi.config.kinds import AnyNames, Budgets, Count, Counts, Section, listed
from mamushi.config.sections import Cells
from mamushi.io.domains import CONTAMINATION, FORGET, RETAIN


class Asked(Section):
    """Which texts membership inference asks about."""

    #: Most forget texts of the inference section, and of the held-out ones, that membership
    #: inference asks about; planted ones are always there. The likelihood ratio takes three seeds.
    texts: Count = 1000


class Left(Cells, Asked):
    """What is left of forget texts in the models, beside the same of gold models: the target
    `left`. The base model, contaminated and beta 0 of every cell are looked at, and for the
    selectors and budgets named here the models that are retrained or unlearned without their lists.
    Datasets, models and seeds that are left out are the grid's."""

    selectors: AnyNames = listed()  #: Selectors by name, whose lists are removed.
    budgets: Budgets = listed(0.5)  #: Shares of the forget set.
    unlearners: AnyNames = listed()  #: Unlearners by name; retraining is always there.


class Planted(Section):
    """Canaries: forget texts of the inference section, drawn at random, that are repeated in the
    contamination section, so that it is known what a model should remember; as many others are held
    out, with which they are compared. Null plants none."""

    texts: Count  #: How many are planted with each number of repeats.
    repeats: Counts = listed(1, 4, 16)  #: How often they are in the contamination section.


class PlantedKey(Section):
    """The key of a dataset."""

    planted: Planted | None = None


def check_planted(full: Mapping[str, Any]) -> Iterator[str]:
    """Yield where a model is pretrained on planted texts: gold starts from the pretrained model,
    and would know them."""
    for name in models_used(full):
        pretraining = full["models"][name].get("pretraining") or {}
        read = pretraining.get("section") == CONTAMINATION and FORGET in pretraining["domains"]
        for dataset in pretraining["datasets"] if read else ():
            if full["datasets"][dataset]["planted"] is not None:
                yield (
                    f"datasets.{dataset}.planted: {name} is pretrained on the texts among which "
                    f"these are planted; write models.{name}.pretraining.domains: [{RETAIN}]"
                )
