"""The cross-fitted logit of a logistic regression on the hidden states of any layers.

What a text is about is often plainer in the middle of a model than before the next token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from mamushi.config.kinds import SOME, Depths, listed
from mamushi.selection.settings import LayersRead

if TYPE_CHECKING:
    from mamushi.selection.pool import Pool, Scored

DEPTHS = "depths"
"""The setting with the depths at which it reads the texts."""


class Settings(LayersRead):
    """Settings of this selector."""

    #: Layers by the share of the model's blocks before them, side by side; 1 is the embedding that
    #: all selectors share.
    depths: Annotated[Depths, SOME] = listed(0.5)


def score(pool: Pool, settings: dict[str, Any], seed: int) -> Scored:
    """Out-of-fold logits of all examples; ``details`` as those of ``mamushi``.

    Raises ``UserError`` when a domain has too few examples for the folds, and for a depth at which
    the texts are not embedded.
    """
    from functools import partial

    from mamushi.selection.crossfit import cross_fit
    from mamushi.selection.linear import estimate_layers

    layers = [pool.at(depth) for depth in settings["depths"]]
    estimate = partial(estimate_layers, layers=layers, prior=settings["prior"])
    return cross_fit(pool, settings["folds"], seed, estimate, "linear", settings["fit_sample"])
