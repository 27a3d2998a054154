"""Negative preference optimization: push the forget texts below their likelihood at the start.

Zhang et al. (2024), Negative Preference Optimization: From Catastrophic Collapse to Effective
Unlearning. ``-(2 / beta) mean_i log sigmoid(-beta log(p(x_i) / p_ref(x_i)))`` over the forget texts
x_i of the step, with p(x) the product over all predicted tokens and p_ref that of the start model,
plus ``retain_weight * L_retain``, the mean NLL per predicted token of the retain texts.
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
        "default": 0.1,
        "description": "Inverse temperature; towards 0 it becomes gradient ascent.",
    },
    "retain_weight": RETAIN_WEIGHT,
}

REFERENCE = True


def loss(forget: Nll, retain: Nll, settings: Mapping[str, Any]) -> torch.Tensor:
    """``-(2 / beta) mean_i log sigmoid(-beta log(p / p_ref)) + retain_weight * L_retain``."""
    assert forget.reference is not None
    beta = float(settings["beta"])
    # A sum of NLLs is -log p, so this is -log(p / p_ref).
    below = forget.sums - forget.reference
    lost = forget.text_mean(functional.logsigmoid(beta * below)) * (-2 / beta)
    return lost + float(settings["retain_weight"]) * retain.mean()
