"""NPO: push the forget texts below their likelihood at the start, ever more slowly.

Zhang et al. (2024), Negative Preference Optimization: From Catastrophic Collapse to Effective
Unlearning: ``-(2 / beta) mean_i log sigmoid(-beta log(p(x_i) / p_start(x_i)))`` over the step's
forget texts, with p(x) the product over the predicted tokens, plus ``retain_weight * L_retain``,
the mean NLL per predicted token of its retain texts. As beta goes to 0, the gradient goes to that
of ascent on ``log p``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mamushi.config.kinds import NotNegative, Positive, Section, key

if TYPE_CHECKING:
    import torch

    from mamushi.unlearning.objective import Nll

START_NLL = True


class Settings(Section):
    """Settings of this unlearner."""

    learning_rate: Positive = key(1.0e-5, "AdamW's learning rate.")
    beta: Positive = key(0.1, "Inverse temperature; towards 0 it becomes gradient ascent.")
    retain_weight: NotNegative = key(1.0, "Weight of the retain loss.")


def loss(forget: Nll, retain: Nll, settings: Mapping[str, Any]) -> torch.Tensor:
    """Return ``-(2/beta) mean_i log sigmoid(-beta log(p / p_start)) + retain_weight L_retain``."""
    from torch.nn.functional import logsigmoid

    assert forget.start_sums is not None
    beta = float(settings["beta"])
    # A sum of NLLs is -log p, so that this is -log(p / p_start).
    below = forget.sums - forget.start_sums
    lost = forget.text_mean(logsigmoid(beta * below)) * (-2 / beta)
    return lost + float(settings["retain_weight"]) * retain.mean()
