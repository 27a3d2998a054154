"""The output head of a model: what makes logits of its last states."""

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel


class EditedHead(nn.Module):
    """Stands where a model had its linear head. ``forward`` gives edited logits (..., V) of hidden
    states (..., width), or those of the tokens ``columns`` (T,)."""


def logits_of(
    head: nn.Linear,
    cap: float | None,
    hidden: Tensor,
    columns: Tensor | None = None,
    scale: float = 1.0,
) -> Tensor:
    """Return the logits (..., V) of hidden states (..., width), or those of the tokens ``columns``
    (T,), by the model's own head, factor and soft-cap."""
    if columns is None:
        logits: Tensor = head(hidden)
    else:
        bias = None if head.bias is None else head.bias[columns]
        logits = functional.linear(hidden, head.weight[columns], bias)
    logits = logits if scale == 1 else logits * scale
    return logits if cap is None else cap * torch.tanh(logits / cap)


def soft_cap(model: PreTrainedModel) -> float | None:
    """Return the c of the logits c tanh(z / c) that a model makes of those of its head, if any."""
    return getattr(model.config, "final_logit_softcapping", None)
