"""Which weights matter for the forget texts: SalUn's mask (Fan et al. 2024).

m = 1(|g| >= gamma) with g the gradient of the forget loss at the start model, where gamma is such
that a share of 1 - sparsity of all weights is kept. One threshold for all tensors together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import torch
from accelerate import Accelerator
from numpy.typing import NDArray

from mamushi.errors import UserError
from mamushi.lm import sharding
from mamushi.lm.attention import supports
from mamushi.lm.batches import batch_of, batches
from mamushi.lm.tokens import TokenSet
from mamushi.running.progress import Progress
from mamushi.unlearning.objective import TextLoss

HIGH, LOW = 2**15, 2**16
"""Values of the upper half (without the sign) and of the lower half of a float's 32 bits."""


class Threshold(NamedTuple):
    """The k-th largest absolute value, as the bits of a float32, and how many equal to it are
    among the k largest."""

    bits: int
    ties: int


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
    tensor, n is of all processes, and so is the choice. Raises ``UserError`` when a value is not
    finite.
    """

    def by_process(counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the counts of every process (processes, counts)."""
        return counts[None] if accelerator is None else sharding.all_gather(counts, accelerator)

    for name, tensor in values.items():
        if by_process(np.array([int((~torch.isfinite(tensor)).sum())])).any():
            raise UserError(f"the gradient of {name} is not finite", do="unlearn in fp32")
    n = int(by_process(np.array([sum(tensor.numel() for tensor in values.values())])).sum())
    keep = n - int(Fraction(str(sparsity)) * n)
    cut = threshold(list(values.values()), keep, lambda counts: by_process(counts).sum(axis=0))
    mine = 0 if accelerator is None else accelerator.process_index
    open_ties, masks = cut.ties, {}
    for name, tensor in values.items():
        bits = _bits(tensor)
        mask = bits > cut.bits
        if open_ties:
            ties = (bits == cut.bits).nonzero()[:, 0]
            ties_kept = by_process(np.array([len(ties)]))[:, 0]
            # The rows of the processes before this one stand before its own.
            mask[ties[: max(0, open_ties - int(ties_kept[:mine].sum()))]] = True
            open_ties = max(0, open_ties - int(ties_kept.sum()))
        masks[name] = mask.view(tensor.shape)
    return masks


def threshold(
    tensors: Sequence[torch.Tensor],
    k: int,
    total: Callable[[NDArray[np.int64]], NDArray[np.int64]] = lambda counts: counts,
) -> Threshold:
    """Find the k-th largest absolute value of all finite elements, 1 <= k <= their number.

    ``total`` adds up counts in these tensors over processes.

    Exact, by radix: bits of floats that are not negative sort like the floats, so a histogram of
    their upper halves and then one of the lower halves in its bin find it. That reads each tensor
    twice and copies one at a time, where a sort of 10^9 weights would need tens of gigabytes.
    """
    counts = np.zeros(HIGH, dtype=np.int64)
    for tensor in tensors:
        counts += torch.bincount(_bits(tensor) >> 16, minlength=HIGH).cpu().numpy()
    high, rest = _bin(total(counts), k)
    counts = np.zeros(LOW, dtype=np.int64)
    for tensor in tensors:
        bits = _bits(tensor)
        inside = bits[bits >> 16 == high] & (LOW - 1)
        counts += torch.bincount(inside, minlength=LOW).cpu().numpy()
    low, rest = _bin(total(counts), rest)
    return Threshold(high * LOW + low, rest)


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """Return absolute values as the integers that their bits spell, int32 (elements,)."""
    return tensor.detach().float().abs().reshape(-1).view(torch.int32)


def _bin(counts: NDArray[np.int64], k: int) -> tuple[int, int]:
    """Find the bin of the k-th largest value, and which one it is in that bin, counted from 1."""
    above = np.cumsum(counts[::-1])
    place = int(np.searchsorted(above, k))
    return len(counts) - 1 - place, k - (int(above[place - 1]) if place else 0)
