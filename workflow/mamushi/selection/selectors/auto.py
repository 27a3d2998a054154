"""The layer, the words, the networks of ``mamushi``, or all together, as held-out evidence says.

Members are the networks, a logistic regression on each of several layers, and one on n-grams; the
stack is their combination. Within each fold the training examples are cross-fitted once more. From
their out-of-fold scores alone come the weights of the stack, the calibration, and the losses by
which one is chosen: the simpler one within a standard error. So no label of a fold has a part in
its scores (Wolpert, 1992; van der Laan et al., 2007).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mamushi.config.kinds import Count, Depths, listed
from mamushi.selection.settings import LayersRead

if TYPE_CHECKING:
    from mamushi.selection.pool import Pool, Scored

DEPTHS = "depths"
READS_TEXTS = True
NETWORKS = "networks"


class Settings(LayersRead):
    """Settings of the members and of their combination."""

    #: Layers by the share of the model's blocks before them, a logistic regression on each; 1 is
    #: the embedding that all selectors share.
    depths: Depths = listed(0.25, 0.5, 0.75, 1.0)
    lexical: bool = True  #: A logistic regression on n-grams of words and characters is a member.
    #: Selector of kind `mamushi` whose networks are a member: its settings, and as many in all
    #: repeats together.
    networks: str = "mamushi"
    #: As many of them in each fold within a fold, where they are weighed.
    inner_networks: Count = 2
    repeats: Count = 4  #: Cross-fittings, each with folds of its own, whose logits are averaged.


def score(pool: Pool, settings: dict[str, Any], seed: int) -> Scored:
    """Out-of-fold logits of all examples, calibrated: see ``_auto.score``."""
    from mamushi.selection.selectors import _auto

    return _auto.score(pool, settings, seed)
