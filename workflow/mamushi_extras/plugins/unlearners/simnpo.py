"""SimNPO: push the forget texts down by their likelihood per token, with no start to compare with.

Fan et al. (2024), Simplicity Prevails: Rethinking Negative Preference Optimization for LLM
Unlearning: ``-(2 / beta) mean_i log sigmoid(-(beta / |x_i|) log p(x_i) - gamma)`` over the step's
forget texts of |x| predicted tokens, plus ``retain_weight * L_retain``, the mean NLL per predicted
token of its retain texts. Long texts are pushed no harder than short ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mamushi.config.kinds import NotNegative, Positive, Section, key

if TYPE_CHECKING:
    import torch

    from mamushi.unlearning.objective import Nll


class Settings(Section):
    """Settings of this unlearner."""

    learning_rate: Positive = key(1.0e-5, "AdamW's learning rate.")
    beta: Positive = key(2.5, "Inverse temperature of the NLL per token.")
    gamma: float = key(0.0, "Margin that beta times the NLL per token is to have above 0.")
    retain_weight: NotNegative = key(1.0, "Weight of the retain loss.")


def loss(forget: Nll, retain: Nll, settings: Mapping[str, Any]) -> torch.Tensor:
    """Return ``-(2/beta) mean log sigmoid(beta NLL_i/|x_i| - gamma) + retain_weight L_retain``."""
    from torch.nn.functional import logsigmoid

    beta, gamma = float(settings["beta"]), float(settings["gamma"])
    margins = beta * forget.sums / forget.tokens - gamma
    lost = forget.text_mean(logsigmoid(margins)) * (-2 / beta)
    return lost + float(settings["retain_weight"]) * retain.mean()
