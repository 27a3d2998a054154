"""Which weights matter for the forget texts: SalUn's mask (Fan et al. 2024).

m = 1(|g| >= gamma) with g the gradient of the forget loss at the start model, where gamma is such
that a share of 1 - sparsity of all weights is kept. One threshold for all tensors together.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from fractions import Fraction

import numpy as np
import torch
from accelerate import Accelerator
from numpy.typing import NDArray

from mamushi.lm import sharding
from mamushi.lm.attention import supports
from mamushi.lm.batches import batch_of, batches
from mamushi.lm.tokens import TokenSet
from mamushi.running.progress import Progress
from mamushi.unlearning.objective import TextLoss


def gradients(
    loss_of: TextLoss,
    forget: TokenSet,
    micro_batch_size: int,
    accelerator: Accelerator,
) -> None:
    """Put into ``.grad`` of the trained parameters the gradient of the mean NLL per token of all
    texts, with its sign: a sum over batches, of which no absolute value is taken.

    The model is put in eval mode. Batches count by their predicted tokens, so that it does not
    matter how texts fall into them.
    """
    loss_of.model.eval()
    loss_of.model.zero_grad(set_to_none=True)
    # Batches of so many tokens have no more than a micro-batch of texts of full length.
    most, shared = micro_batch_size * int(forget.lengths.max()), supports(loss_of.model)
    parts = list(batches(forget.lengths, most, shared=shared))
    tokens = float(forget.counted.sum())
    with Progress(len(forget), "saliency", "text") as progress:
        for rows, counted in sharding.split(parts, accelerator):
            batch = batch_of(forget, rows, accelerator.device, shared=shared)
            with accelerator.autocast():
                loss = loss_of(batch).sum() / tokens
            # Gradients are averaged over processes; multiplied back, they are the sum.
            torch.autograd.backward(loss * (counted * accelerator.num_processes))
            progress.advance(len(rows))


def largest(
    values: Mapping[str, torch.Tensor], sparsity: float, accelerator: Accelerator | None = None
) -> dict[str, torch.Tensor]:
    """Return masks, bool, of the n - floor(sparsity * n) largest absolute values of all n in
    ``values``.

    Of equal values at the threshold the first are taken, in the order of the tensors and of their
    elements. With an ``accelerator`` whose processes share a model, each has its rows of every
    tensor, n is of all processes, and so is the choice.
    """

    def by_process(count: int) -> NDArray[np.int64]:
        """Return the count of every process (processes,)."""
        counts = np.array([count])
        return counts if accelerator is None else sharding.all_gather(counts, accelerator)[:, 0]

    def above(bits: int) -> int:
        return int(by_process(sum(int((_bits(t) > bits).sum()) for t in values.values())).sum())

    n = int(by_process(sum(tensor.numel() for tensor in values.values())).sum())
    keep = n - int(Fraction(str(sparsity)) * n)
    # By halving: bits of floats that are not negative sort like the floats. That copies one tensor
    # at a time, where a sort of 10^9 weights would need tens of gigabytes.
    cut = bisect_left(range(2**31 - 1), -keep + 1, key=lambda bits: -above(bits))
    mine = 0 if accelerator is None else accelerator.process_index
    open_ties, masks = keep - above(cut), {}
    for name, tensor in values.items():
        bits = _bits(tensor)
        mask = bits > cut
        if open_ties:
            ties = (bits == cut).nonzero()[:, 0]
            ties_kept = by_process(len(ties))
            # The rows of the processes before this one stand before its own.
            mask[ties[: max(0, open_ties - int(ties_kept[:mine].sum()))]] = True
            open_ties = max(0, open_ties - int(ties_kept.sum()))
        masks[name] = mask.view(tensor.shape)
    return masks


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """Return absolute values as the integers that their bits spell, int32 (elements,)."""
    return tensor.detach().float().abs().reshape(-1).view(torch.int32)
