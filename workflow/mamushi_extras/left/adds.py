"""What this room adds to the core: the sections ``left`` and ``tasks`` of the configuration, and
``probe.relearning``."""

from typing import Annotated

from mamushi.config.kinds import (
    DISTINCT,
    SOME,
    Added,
    AnyNames,
    Budgets,
    Count,
    Place,
    Positive,
    Section,
    key,
)
from mamushi.config.sections import Cells


class Lists(Cells):
    """The models that are retrained or unlearned without lists."""

    selectors: AnyNames = key([], "Selectors by name, whose lists are removed.")
    budgets: Budgets = key([0.5], "Shares of the forget set.")
    unlearners: AnyNames = key([], "Unlearners by name; retraining is always there.")


class Left(Lists):
    """What is left of forget texts in the models, beside the same of gold models: the target
    `left`. The base model, contaminated and beta 0 of every cell are looked at, and for the
    selectors and budgets named here the models that are retrained or unlearned without their lists.
    Datasets, models and seeds that are left out are the grid's."""

    texts: Count = key(
        1000,
        "Most forget texts of the inference section, and of the held-out ones, that membership "
        "inference asks about. The likelihood ratio takes three seeds.",
    )


class Tasks(Lists):
    """What the models can still do: tasks of lm-evaluation-harness, the target `tasks`, of the same
    models as `left` and of gold."""

    names: Annotated[list[Place], DISTINCT] = key(
        [], "Tasks or groups of lm-evaluation-harness, such as arc_easy, or YAML files of tasks."
    )
    examples: Count | None = key(None, "The first so many examples of each task; null for all.")


class Relearning(Section):
    """Fine-tuning on a few forget examples, which shows how much was hidden and not forgotten."""

    examples: Count = key(16, "Forget texts, at random.")
    steps: Annotated[list[Count], SOME, DISTINCT] = key(
        [1, 2, 4, 8, 16, 32], "Steps after which perplexity is measured."
    )
    batch_size: Count = key(8, "Texts a step.")
    learning_rate: Positive = key(1.0e-5, "AdamW's learning rate in relearning.")


RELEARNING = Relearning | None, key(Relearning(), "null: nothing relearns.")
config = Added({"left": (Left, Left()), "tasks": (Tasks, Tasks()), "probe.relearning": RELEARNING})
