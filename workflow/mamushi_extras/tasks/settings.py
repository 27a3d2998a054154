"""What this room adds to the configuration: the section ``tasks``."""

from __future__ import annotations

from typing import Annotated

from mamushi.config.kinds import DISTINCT, AnyNames, Budgets, Count, Place, listed
from mamushi.config.sections import Cells


class Tasks(Cells):
    """What the models can still do: tasks of lm-evaluation-harness, the target `tasks`. The base
    model, contaminated, beta 0 and gold of every cell are asked, and for the selectors and budgets
    named here the models that are retrained or unlearned without their lists. Datasets, models and
    seeds that are left out are the grid's."""

    #: Tasks or groups of lm-evaluation-harness by name, such as arc_easy, or YAML files of tasks of
    #: your own.
    names: Annotated[list[Place], DISTINCT] = listed()
    #: The first so many examples of each task; null for all.
    examples: Count | None = None
    selectors: AnyNames = listed()  #: Selectors by name, whose lists are removed.
    budgets: Budgets = listed(0.5)  #: Shares of the forget set.
    unlearners: AnyNames = listed()  #: Unlearners by name; retraining is always there.
