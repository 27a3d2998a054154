"""What this room adds to the core: the section ``cross_entropy`` of the configuration."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from annotated_types import Ge

from mamushi.config.kinds import Added, Section, key


class CrossEntropy(Section):
    """How the selectors `cross_entropy` and `token_cross_entropy` measure it, where no model was
    contaminated by other texts than the ranked ones."""

    folds: Annotated[int, Ge(2)] = key(2, "Folds: two models are trained for each, on the others.")


def check(full: Mapping[str, Any]) -> Iterator[str]:
    """Check that a judge is a language model that is configured."""
    for name, selector in full["selectors"].items():
        judge = selector.get("judge")
        if judge is not None and "training" not in full["models"].get(judge, {}):
            yield f"selectors.{name}.judge: {judge!r} is not allowed; name a model with weights"


config = Added({"cross_entropy": (CrossEntropy, CrossEntropy())}, check)
