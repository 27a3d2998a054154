"""Settings that several selectors share. Nothing heavy is imported: see ``registry``."""

from typing import Annotated

from annotated_types import Ge

from mamushi.config.kinds import Section


class CrossFitted(Section):
    """Settings of a selector that scores each text by an estimator that has not seen it."""

    #: Folds of the stratified cross-fitting, and of one within, where there is one.
    folds: Annotated[int, Ge(2)] = 5
    #: Most examples that an estimator is fitted on, drawn in each fold: all of a domain that is at
    #: most half of them, else both in proportion; all are scored. null: all of the other folds.
    fit_sample: Annotated[int, Ge(1000)] | None = 200_000
