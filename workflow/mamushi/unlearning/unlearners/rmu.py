"""RMU: steer hidden states of forget texts to one random vector, and keep those of retain texts.

Li et al. (2024), The WMDP Benchmark: Measuring and Reducing Malicious Use With Unlearning:
``mean_i 1/L_i sum_t |h(t) - c u|^2`` over the step's forget texts of L tokens, plus ``alpha`` times
``mean_i 1/L_i sum_t |h(t) - h_start(t)|^2`` over its retain texts. h is the state after the block
``layer``, u a random vector of length 1 with entries drawn from [0, 1). The paper trains that block
and two before it; here it is the last of ``unlearning.trained_blocks`` by default, and the trained
blocks behind another one stay as they are. Their code averages over the width too: all divided by
it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mamushi.config.kinds import NotNegative, Positive, Section

if TYPE_CHECKING:
    import torch

    from mamushi.unlearning.objective import Nll

STATES = "layer"


class Settings(Section):
    """Settings of this unlearner."""

    learning_rate: Positive = 5.0e-5  #: AdamW's learning rate.
    layer: int = -1  #: Block whose output is steered, one of the trained ones; -1 is the last.
    steering: Positive = 6.5  #: Length c of the vector to which forget states go.
    alpha: NotNegative = 1200.0  #: Weight of the distance of retain states from those at the start.


def loss(forget: Nll, retain: Nll, settings: Mapping[str, Any]) -> torch.Tensor:
    """Return ``mean_i |h - c u|^2`` (forget) ``+ alpha mean_i |h - h_start|^2`` (retain)."""
    assert forget.states is not None and retain.states is not None
    target = float(settings["steering"]) * forget.states.direction
    lost = forget.text_mean(forget.states.square_distances(target))
    kept = retain.text_mean(retain.states.square_distances(retain.states.start))
    return lost + float(settings["alpha"]) * kept
