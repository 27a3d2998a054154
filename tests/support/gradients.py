"""A model's loss and gradients as exactly as they can be had, to compare with."""

from types import MethodType
from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor, nn
from torch.nn import functional
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import eager_mask
from transformers.models.gemma2.modeling_gemma2 import repeat_kv

from mamushi.lm import sharding
from mamushi.lm.parameters import freeze
from mamushi.lm.tokens import TokenSet
from tests.support.models import TRAINING, model, training_of
from tests.support.steps import step_of

REFERENCE = "reference"


def reference_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor,
    scaling: float,
    softcap: float | None = None,
    dropout: float = 0.0,
    **_: Any,
) -> tuple[Tensor, None]:
    """What transformers computes in its eager attention, without its rounding to fp32 between."""
    groups = module.num_key_value_groups
    key, value = repeat_kv(key, groups), repeat_kv(value, groups)
    scores = query @ key.transpose(2, 3) * scaling
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    weights = functional.softmax(scores + attention_mask, dim=-1)
    weights = functional.dropout(weights, dropout, module.training)
    return (weights @ value).transpose(1, 2).contiguous(), None


AttentionInterface.register(REFERENCE, reference_attention)
AttentionMaskInterface.register(REFERENCE, eager_mask)


def norm(self: nn.Module, x: Tensor) -> Tensor:
    """Gemma's, without its rounding to fp32."""
    return self._norm(x) * (1.0 + self.weight)


def exact(language_model: PreTrainedModel) -> PreTrainedModel:
    """In fp64, with padded passes that are exact to it and with biases that are not 0."""
    language_model = language_model.double()
    for module in language_model.modules():
        if type(module).__name__.startswith("Gemma") and hasattr(module, "_norm"):
            module.forward = MethodType(norm, module)
    language_model.set_attn_implementation(REFERENCE)
    torch.manual_seed(5)
    with torch.no_grad():
        for name, parameter in language_model.named_parameters():
            if name.endswith("bias"):
                parameter.normal_()
    return language_model


def step_gradients(
    family: str, micro: int, accelerator: Accelerator, texts: TokenSet
) -> tuple[float, dict[str, Tensor]]:
    """Loss and gradients of one step of all texts, by a model that may be cut over processes."""
    language_model = exact(model(family))
    freeze(language_model, training_of(TRAINING))
    sharding.shard(language_model, accelerator)
    if accelerator.num_processes > 1:
        shares = [sharding.shard_of(p).numel() for p in language_model.parameters()]
        assert sum(shares) < sum(p.numel() for p in language_model.parameters())
    total = step_of(language_model, texts, accelerator, micro_batch_size=micro)()[0]
    found = {
        name: sharding.full_tensor(parameter.grad)
        for name, parameter in language_model.named_parameters()
        if parameter.grad is not None
    }
    return float(total), found
