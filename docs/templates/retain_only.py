"""Fine-tuning on retain texts alone: what is no longer trained on fades."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mamushi.config.kinds import Positive, Section, key

if TYPE_CHECKING:
    import torch

    from mamushi.unlearning.objective import Nll


class Settings(Section):
    """Settings of this unlearner."""

    learning_rate: Positive = key(1.0e-5, "AdamW's learning rate.")


def loss(forget: Nll, retain: Nll, settings: Mapping[str, Any]) -> torch.Tensor:
    """Return L_retain, the mean NLL per predicted token in nats."""
    return retain.mean()


# What an unlearner may declare beside Settings:
#   STOPS = "stop_forget_loss"   the setting above which the mean forget loss ends it
#   RANDOM_LABELS = True         forget texts have random labels
#   SALIENCY = "sparsity"        the setting with the share of weights that it trains
#   START_NLL = True             forget.start_sums: the forget texts' NLL under the start model
#   TRAINS = False               `edit` and `lay_over` of logits, no `loss`: see `logit_bias.py`
