"""Gradient difference: the retain loss minus the forget loss.

Liu, Liu and Stone (2022), Continual Learning and Private Unlearning; for language models Maini et
al. (2024), TOFU. ``retain_weight * L_retain - forget_weight * L_forget`` with L the mean NLL per
predicted token of the step's texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from mamushi.unlearning.objective import LEARNING_RATE, RETAIN_WEIGHT, Nll

SETTINGS: dict[str, Any] = {
    "learning_rate": LEARNING_RATE,
    "forget_weight": {
        "type": "number",
        "minimum": 0,
        "default": 1.0,
        "description": "Weight of the forget loss, which is ascended.",
    },
    "retain_weight": RETAIN_WEIGHT,
    "stop_forget_loss": {
        "type": ["number", "null"],
        "exclusiveMinimum": 0,
        "default": None,
        "description": "Mean forget loss, in nats per token, above which to stop; null for never.",
    },
}

STOPS = "stop_forget_loss"


def loss(forget: Nll, retain: Nll, settings: Mapping[str, Any]) -> torch.Tensor:
    """``retain_weight * L_retain - forget_weight * L_forget``."""
    kept, lost = float(settings["retain_weight"]), float(settings["forget_weight"])
    return kept * retain.mean() - lost * forget.mean()
