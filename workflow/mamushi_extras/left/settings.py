"""What this room adds to the configuration: the section ``left``."""

from __future__ import annotations

from mamushi.config.kinds import AnyNames, Budgets, Count, listed
from mamushi.config.sections import Cells


class Left(Cells):
    """What is left of forget texts in the models, beside the same of gold models: the target
    `left`. The base model, contaminated and beta 0 of every cell are looked at, and for the
    selectors and budgets named here the models that are retrained or unlearned without their lists.
    Datasets, models and seeds that are left out are the grid's."""

    #: Most forget texts of the inference section, and of the held-out ones, that membership
    #: inference asks about. The likelihood ratio takes three seeds.
    texts: Count = 1000
    selectors: AnyNames = listed()  #: Selectors by name, whose lists are removed.
    budgets: Budgets = listed(0.5)  #: Shares of the forget set.
    unlearners: AnyNames = listed()  #: Unlearners by name; retraining is always there.
