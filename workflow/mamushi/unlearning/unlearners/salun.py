"""SalUn: learn random labels for the forget texts, in the weights that matter for them alone.

Fan et al. (2024), SalUn: Empowering Machine Unlearning via Gradient-based Weight Saliency; here in
the paper's form for language models ``forget_weight * L_random + retain_weight * L_retain`` with L
the mean NLL per predicted token of the step's texts and L_random that of random labels: uniform
over the vocabulary without the true token, drawn anew in each step. Only the weights with the
largest gradients of the forget loss at the start move, a share of 1 - ``sparsity``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mamushi.config.kinds import Below, NotNegative, Positive, Section, key

if TYPE_CHECKING:
    import torch

    from mamushi.unlearning.objective import Nll

RANDOM_LABELS = True
SALIENCY = "sparsity"


class Settings(Section):
    """Settings of this unlearner."""

    learning_rate: Positive = key(3.0e-6, "AdamW's learning rate.")
    forget_weight: NotNegative = key(0.1, "Weight of the loss of random labels on forget texts.")
    retain_weight: NotNegative = key(0.9, "Weight of the retain loss.")
    sparsity: Below = key(0.5, "Share of the trained blocks' weights that stay as they are.")


def loss(forget: Nll, retain: Nll, settings: Mapping[str, Any]) -> torch.Tensor:
    """Return ``forget_weight * L_random + retain_weight * L_retain``."""
    of_forget, of_retain = (float(settings[f"{name}_weight"]) for name in ("forget", "retain"))
    return of_forget * forget.mean() + of_retain * retain.mean()
