"""NegGrad+: descent on the retain loss and ascent on the forget loss in one step.

Kurmanji et al. (2023), Towards Unbounded Machine Unlearning; here in the paper's form
``beta_ng * L_retain - (1 - beta_ng) * L_forget`` with L the mean NLL per predicted token of the
step's texts. Ascent has no end of its own, so a run stops once the running mean of L_forget is
above ``stop_forget_loss``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mamushi.config.kinds import Portion, Positive, Section

if TYPE_CHECKING:
    import torch

    from mamushi.unlearning.objective import Nll

STOPS = "stop_forget_loss"


class Settings(Section):
    """Settings of this unlearner."""

    learning_rate: Positive = 1.0e-5  #: AdamW's learning rate.
    beta_ng: Portion = 0.85  #: Weight of the retain loss; the rest is that of the forget loss.
    #: Mean forget loss, in nats per token, above which to stop; null for never. Where tokens are
    #: unlearned, it is higher by as much as their loss is above that of their texts at the start.
    stop_forget_loss: Positive | None = 5.0


def loss(forget: Nll, retain: Nll, settings: Mapping[str, Any]) -> torch.Tensor:
    """Return ``beta_ng * L_retain - (1 - beta_ng) * L_forget``."""
    beta = float(settings["beta_ng"])
    return beta * retain.mean() - (1 - beta) * forget.mean()
