"""SalUn: learn random labels for the forget texts, in the weights that matter for them alone.

Fan et al. (2024), SalUn: Empowering Machine Unlearning via Gradient-based Weight Saliency; here in
the paper's form for language models ``forget_weight * L_random + retain_weight * L_retain`` with L
the mean NLL per predicted token of the step's texts and L_random that of random labels: uniform
over the vocabulary without the true token, drawn anew in each step. Only the weights with the
largest gradients of the forget loss at the start move, a share of 1 - ``sparsity``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from mamushi.unlearning.objective import Nll

SETTINGS: dict[str, Any] = {
    "learning_rate": {
        "type": "number",
        "exclusiveMinimum": 0,
        "default": 3.0e-6,
        "description": "AdamW's learning rate.",
    },
    "forget_weight": {
        "type": "number",
        "minimum": 0,
        "default": 0.1,
        "description": "Weight of the loss of random labels on the forget texts.",
    },
    "retain_weight": {
        "type": "number",
        "minimum": 0,
        "default": 0.9,
        "description": "Weight of the retain loss.",
    },
    "sparsity": {
        "type": "number",
        "minimum": 0,
        "exclusiveMaximum": 1,
        "default": 0.5,
        "description": "Share of the trained blocks' weights that stay as they are.",
    },
}

RANDOM_LABELS = True
SALIENCY = "sparsity"


def loss(forget: Nll, retain: Nll, settings: Mapping[str, Any]) -> torch.Tensor:
    """``forget_weight * L_random + retain_weight * L_retain``."""
    lost, kept = float(settings["forget_weight"]), float(settings["retain_weight"])
    return lost * forget.mean() + kept * retain.mean()
