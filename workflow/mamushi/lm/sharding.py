"""A model that no single GPU holds: accelerate's FSDP2 cuts it over the processes of a job, where a
block is whole only while it computes. What is stored of it is whole."""

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import torch
from accelerate import Accelerator, FullyShardedDataParallelPlugin
from accelerate.utils import fsdp2_prepare_model
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, distribute_tensor
from transformers import PreTrainedModel

from mamushi.lm.parameters import decoder_blocks


class _Root(nn.Module):
    """The unit around a model: its forward pass calls a function, since the loss calls body and
    head apart."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.model, self.tie_weights = model, model.tie_weights
        # What accelerate takes for units of their own.
        self._no_split_modules = [type(block).__name__ for block in decoder_blocks(model)]

    def forward(self, function: Callable[..., Any], *args: Any) -> Any:
        return function(*args)


_roots: WeakKeyDictionary[nn.Module, Any] = WeakKeyDictionary()


def shard(model: PreTrainedModel, accelerator: Accelerator) -> None:
    """Shard the model of the first process, in place, over all processes of a job if it has
    several. Within a unit, all tensors with gradients must have one dtype."""
    if accelerator.num_processes > 1:
        # By the options of the launcher.
        accelerator.state.fsdp_plugin = FullyShardedDataParallelPlugin()
        _roots[model] = fsdp2_prepare_model(accelerator, _Root(model))


def call_gathered(model: PreTrainedModel, function: Callable[..., Any], *args: Any) -> Any:
    """Call ``function(*args)``, a pass of the model, with its outer weights whole if it is sharded:
    as often in all processes, and not nested."""
    root = _roots.get(model)
    if root is None:
        return function(*args)
    output = root(function, *args)
    if not torch.is_grad_enabled():
        # Between two passes all tensors are shards, which else the backward pass sees to.
        root.reshard()
    return output


def shard_of(tensor: Tensor) -> Tensor:
    """Return this process's shard of a tensor, which is the tensor itself where it is whole."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def full_tensor(tensor: Tensor) -> Tensor:
    """Return the whole tensor. All processes have to ask."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


@torch.no_grad()
def fill_tensor(tensor: Tensor, stored: Tensor) -> None:
    """Copy the whole tensor ``stored`` into a tensor, or this process's rows of it into a shard."""
    if isinstance(tensor, DTensor):
        where = (tensor.device_mesh, tensor.placements)
        stored = distribute_tensor(stored.to(tensor.device), *where, src_data_rank=None)
    tensor.copy_(stored)
