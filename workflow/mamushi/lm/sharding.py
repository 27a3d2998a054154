"""Where a model lies: on a device; or cut over the processes of a job by accelerate's FSDP2, where
no single GPU holds it. Then a block is whole only while it computes. What is stored is whole."""

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


def place_model(model: PreTrainedModel, precision: str, device: torch.device) -> PreTrainedModel:
    """Move a model to its device: frozen parameters in ``precision``, trained ones in fp32, since
    small steps vanish in bf16, also of a model that is only evaluated. Layer norms are always in
    fp32: PyTorch's kernel on the CPU takes input in fp32 with no other parameters."""
    frozen = torch.bfloat16 if precision == "bf16" else torch.float32
    modules = (m for m in model.modules() if isinstance(m, nn.LayerNorm | nn.GroupNorm))
    norms = {id(parameter) for module in modules for parameter in module.parameters(recurse=False)}
    for parameter in model.parameters():
        is_whole = parameter.requires_grad or id(parameter) in norms
        parameter.data = parameter.data.to(device, torch.float32 if is_whole else frozen)
    # Buffers (rotary frequencies) stay in fp32: positions would lose precision in bf16.
    for buffer in model.buffers():
        buffer.data = buffer.data.to(device)
    return model


_roots: WeakKeyDictionary[nn.Module, Any] = WeakKeyDictionary()


def shard(model: PreTrainedModel, accelerator: Accelerator) -> None:
    """Cut the model of the first process, in place, over all of a job, where there are several.
    Tensors of one unit that take gradients must have one dtype."""
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
