"""SimNPO: negative preference optimization without a reference, by the likelihood per token.

Fan et al. (2024), Simplicity Prevails: Rethinking Negative Preference Optimization for LLM
Unlearning. ``-(2 / beta) mean_i log sigmoid(-(beta / |y_i|) log p(y_i) - gamma)`` over the forget
texts y_i of the step with |y| predicted tokens, plus ``retain_weight * L_retain``, the mean NLL per
predicted token of the retain texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.nn import functional

from mamushi.unlearning.objective import LEARNING_RATE, RETAIN_WEIGHT, Nll

SETTINGS: dict[str, Any] = {
    "learning_rate": LEARNING_RATE,
    "beta": {
        "type": "number",
        "exclusiveMinimum": 0,
        "default": 2.5,
        "description": "Inverse temperature of the NLL per token.",
    },
    "gamma": {
        "type": "number",
        "default": 0.0,
        "description": "Margin by which beta times the NLL per token is to be larger than 0.",
    },
    "retain_weight": RETAIN_WEIGHT,
}


def loss(forget: Nll, retain: Nll, settings: Mapping[str, Any]) -> torch.Tensor:
    """``-(2/beta) mean_i log sigmoid(beta NLL_i / |y_i| - gamma) + retain_weight * L_retain``."""
    beta, gamma = float(settings["beta"]), float(settings["gamma"])
    margins = beta * forget.sums / forget.tokens - gamma
    lost = forget.text_mean(functional.logsigmoid(margins)) * (-2 / beta)
    return lost + float(settings["retain_weight"]) * retain.mean()
