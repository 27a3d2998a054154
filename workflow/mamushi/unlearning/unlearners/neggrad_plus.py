"""NegGrad+: descent on the retain loss and ascent on the forget loss in one step.

Kurmanji et al. (2023), Towards Unbounded Machine Unlearning; here in the paper's form
``beta_ng * L_retain - (1 - beta_ng) * L_forget`` with L the mean NLL per predicted token of the
step's texts. Ascent has no end of its own, so a run stops once the running mean of L_forget is
above ``stop_forget_loss``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mamushi.config.kinds import Portion, Positive, Section, key

if TYPE_CHECKING:
    import torch

    from mamushi.unlearning.objective import Nll

STOPS = "stop_forget_loss"


class Settings(Section):
    """Settings of this unlearner."""

    learning_rate: Positive = key(1.0e-5, "AdamW's learning rate.")
    beta_ng: Portion = key(0.85, "Weight of the retain loss; the rest is that of the forget loss.")
    stop_forget_loss: Positive | None = key(
        5.0, "Mean forget loss in nats per token above which to stop, of tokens more; null: never."
    )


def loss(forget: Nll, retain: Nll, settings: Mapping[str, Any]) -> torch.Tensor:
    """Return ``beta_ng * L_retain - (1 - beta_ng) * L_forget``."""
    beta = float(settings["beta_ng"])
    return beta * retain.mean() - (1 - beta) * forget.mean()
