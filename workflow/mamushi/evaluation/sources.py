"""Whose numbers a row of a table has."""

from __future__ import annotations

from dataclasses import dataclass

from mamushi.configuration import arms

RETRAINING = "retraining"
"""What tables call training without the examples of a list, beside the names of unlearners."""


@dataclass(frozen=True)
class Source:
    """A model of each seed: an endpoint, or what retraining or an unlearner made of a list."""

    source: str
    selector: str | None = None
    beta: float | None = None

    @property
    def arm(self) -> str:
        """Its name among the models of a cell."""
        if self.selector is None or self.beta is None:
            return self.source
        made = arms.RETRAINING if self.source == RETRAINING else self.source
        return arms.unlearned(made, self.selector, self.beta)
