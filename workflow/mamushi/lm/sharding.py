"""A model that no single GPU holds: each process of a job keeps a share of every tensor (FSDP2).

A tensor is cut along its first dimension, as ``torch.distributed.fsdp.fully_shard`` does. A block
is whole on a GPU only while it computes: its weights are gathered before that and forgotten after
it, and its gradients are summed into the shares. What lies outside the blocks (embedding, last
norm, head) is one unit more, which is whole for the length of a pass: see ``through``. The maths is
that of one process; sums over processes have another order. Mixed precision is the autocast that
one process has, over the same fp32 weights where they are trained.

Which processes these are is ``running.launch``'s matter. What is stored, checkpoints and trained
tensors, is whole: who reads it need not be as many.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import torch
from accelerate import Accelerator
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import PreTrainedModel

from mamushi.lm import parameters
from mamushi.running.launch import SHARDS

PART = 2**27
"""Values that are summed over processes at once."""
Found = TypeVar("Found")
Item = TypeVar("Item")


class _Whole(nn.Module):
    """The unit around a model: calls a function while what lies outside the blocks is whole."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, function: Callable[[], Any]) -> Any:
        return function()


_wholes: WeakKeyDictionary[nn.Module, nn.Module] = WeakKeyDictionary()


def active(accelerator: Accelerator) -> bool:
    """Whether models are cut over the processes of this job."""
    return accelerator.num_processes > 1 and SHARDS in os.environ


def takes_part(accelerator: Accelerator) -> bool:
    """Whether this process computes what the first one of a launch does: it does if they share a
    model, and need not if each has one of its own."""
    return accelerator.is_main_process or active(accelerator)


def shard(model: PreTrainedModel, device: torch.device) -> None:
    """Cut the model over all processes, in place; tensors on the meta device stay there.

    Which tensors take gradients may change until the first pass, and the dtype of none: those of
    one unit that do must have one.
    """
    # Only here: importing them takes a second, which a job with one process need not wait for.
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh(device.type, (torch.distributed.get_world_size(),))
    for block in parameters.decoder_blocks(model)[1]:
        fully_shard(block, mesh=mesh)
    whole = _Whole(model)
    # Forgotten after a forward pass too: between two passes all tensors are shares.
    fully_shard(whole, mesh=mesh, reshard_after_forward=True)
    _wholes[model] = whole


def through(model: PreTrainedModel, function: Callable[..., Found], *args: Any) -> Found:
    """``function(*args)``, a pass of the model, with its outer weights whole if it is cut.

    All processes have to make the same number of passes. Not to be nested.
    """
    whole = _wholes.get(model)
    if whole is None:
        return function(*args)
    found: Found = whole(partial(function, *args))
    return found


def _cut(tensor: Any) -> Any:
    """The tensor as a ``DTensor``, if it is cut."""
    return tensor if hasattr(tensor, "device_mesh") else None


def local(tensor: Tensor) -> Tensor:
    """This process's share of a tensor, which is the tensor itself where it is not cut."""
    cut = _cut(tensor)
    share: Tensor = tensor if cut is None else cut.to_local()
    return share


def gathered(tensor: Tensor) -> Tensor:
    """The whole tensor. All processes have to ask."""
    cut = _cut(tensor)
    found: Tensor = tensor if cut is None else cut.full_tensor()
    return found


@torch.no_grad()
def fill(tensor: Tensor, stored: Any) -> None:
    """Copy the whole tensor ``stored``, or what slices like it, into a tensor or its share."""
    cut = _cut(tensor)
    if cut is None:
        tensor.copy_(stored[...])
        return
    share = cut.to_local()
    # As `torch.chunk` does: all shares have as many rows, but for the last ones.
    first = cut.device_mesh.get_local_rank() * -(-tensor.shape[0] // cut.device_mesh.size())
    if len(share):
        share.copy_(stored[first : first + len(share)])


def dealt(parts: Sequence[Item], accelerator: Accelerator) -> Iterator[tuple[Item, bool]]:
    """This process's share of the passes over ``parts``, each with whether it counts.

    All of them where models are not cut. Else every process makes as many passes; one that has less
    to do repeats the first, which then does not count.
    """
    if not active(accelerator):
        yield from ((part, True) for part in parts)
        return
    for first in range(0, len(parts), accelerator.num_processes):
        place = first + accelerator.process_index
        yield (parts[place], True) if place < len(parts) else (parts[0], False)


def summed(values: NDArray[Any], accelerator: Accelerator) -> NDArray[Any]:
    """The values of which each process has its ``dealt`` share and 0 elsewhere: nothing is rounded.

    In the place of those that were given, a part at a time: a GPU holds no ten million texts.
    """
    if active(accelerator):
        for part in torch.from_numpy(values).view(-1).split(PART):
            there = part.to(accelerator.device)
            torch.distributed.all_reduce(there)
            part.copy_(there)
    return values


def norm(gradients: Sequence[Tensor], accelerator: Accelerator) -> Tensor:
    """The 2-norm of all gradients together, of which each process may have a share."""
    found = nn.utils.get_total_norm([local(each) for each in gradients])
    if not active(accelerator):
        return found
    square = found.to(accelerator.device).square()
    torch.distributed.all_reduce(square)
    return square.sqrt()


def everywhere(what: bool, accelerator: Accelerator) -> bool:
    """Whether it is so in all processes over which a model is cut."""
    if not active(accelerator):
        return what
    said = torch.tensor(float(not what), device=accelerator.device)
    torch.distributed.all_reduce(said)
    return not bool(said)


def each(counts: NDArray[np.int64], accelerator: Accelerator) -> NDArray[np.int64]:
    """The counts (n,) of every process over which a model is cut: (processes, n)."""
    if not active(accelerator):
        return counts[None]
    mine = torch.from_numpy(counts).to(accelerator.device)
    found = [torch.empty_like(mine) for _ in range(accelerator.num_processes)]
    torch.distributed.all_gather(found, mine)
    return torch.stack(found).cpu().numpy()
