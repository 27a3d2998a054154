"""Which weights matter for the forget texts: SalUn's mask (Fan et al. 2024), m = 1(|g| >= gamma)
with g the gradient of the forget loss at the start model, where gamma, one for all tensors, is such
that a share of 1 - sparsity of the weights is kept."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from fractions import Fraction

import numpy as np
import torch
from accelerate import Accelerator

from mamushi.lm.attention import supports
from mamushi.lm.batches import batch_of, batches
from mamushi.lm.device import all_reduce, share_batches
from mamushi.lm.tokens import TokenSet
from mamushi.running.progress import Progress
from mamushi.unlearning.objective import TextLoss


def gradients(
    loss_of: TextLoss,
    forget: TokenSet,
    micro_batch_size: int,
    accelerator: Accelerator,
) -> None:
    """Put into ``.grad`` of the trained parameters, in eval mode, the gradient of the mean NLL per
    token of all texts, with its sign, however they fall into batches."""
    loss_of.model.eval()
    loss_of.model.zero_grad(set_to_none=True)
    # Batches of so many tokens have no more than a micro-batch of texts of full length.
    most, shared = micro_batch_size * int(forget.lengths.max()), supports(loss_of.model)
    tokens = float(forget.counted.sum())
    with Progress(len(forget), "saliency", "text") as progress:
        every = list(batches(forget.lengths, most, shared=shared))
        for rows, counted in share_batches(every, accelerator):
            batch = batch_of(forget, rows, accelerator.device, shared=shared)
            with accelerator.autocast():
                loss = loss_of(batch).sum() / tokens
            # Gradients are averaged over processes; multiplied back, they are the sum.
            torch.autograd.backward(loss * (counted * accelerator.num_processes))
            progress.advance(len(rows))


def largest(
    values: Mapping[str, torch.Tensor], sparsity: float, accelerator: Accelerator
) -> dict[str, torch.Tensor]:
    """Return masks, bool, of the n - floor(sparsity * n) largest absolute values of all n in
    ``values``, and of those that equal the least of them. Of tensors that are cut over processes
    each has its shards."""

    def total(count: int) -> int:
        return int(all_reduce(np.array([count]), accelerator)[0])

    def above(bits: int) -> int:
        return total(sum(int((_bits(tensor) > bits).sum()) for tensor in values.values()))

    n = total(sum(tensor.numel() for tensor in values.values()))
    keep = n - int(Fraction(str(sparsity)) * n)
    # By halving: bits of floats that are not negative sort like the floats. That copies one tensor
    # at a time, where a sort of 10^9 weights would need tens of gigabytes.
    cut = bisect_left(range(2**31 - 1), -keep + 1, key=lambda bits: -above(bits))
    return {name: _bits(tensor).view(tensor.shape) >= cut for name, tensor in values.items()}


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """Return absolute values as the integers that their bits spell, int32 (elements,)."""
    return tensor.detach().float().abs().reshape(-1).view(torch.int32)
