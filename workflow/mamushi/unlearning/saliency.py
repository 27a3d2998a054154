"""SalUn's mask (Fan et al. 2024): which of the trained weights matter for the forget texts,
m = 1(|g| >= gamma) with g the gradient of the forget loss at the start model, where
gamma, one for all tensors, is such that a share of 1 - sparsity of the weights is free."""

from bisect import bisect_left
from collections.abc import Mapping
from fractions import Fraction

import torch
from accelerate import Accelerator

from mamushi.lm.batches import model_batches
from mamushi.lm.sharding import shard_of
from mamushi.lm.tokens import TokenSet
from mamushi.unlearning.objective import TextLoss


class SaliencyMask:
    """Of each trained tensor the weights that must stay as they are, and a copy of it as it was at
    the start; of a model that is cut over processes, of their shards."""

    def __init__(
        self,
        loss_of: TextLoss,
        forget: TokenSet,
        sparsity: float,
        micro_batch_size: int,
        accelerator: Accelerator,
    ) -> None:
        loss_of.zero_grad(set_to_none=True)
        # Batches of so many tokens have no more than a micro-batch of texts of full length.
        most = micro_batch_size * int(forget.lengths.max())
        tokens = float(forget.counted.sum())
        for _, batch, counts in model_batches(loss_of.model, forget, most, accelerator, "saliency"):
            with accelerator.autocast():
                loss = loss_of(batch).sum() / tokens
            # Gradients are averaged over processes; multiplied back, they are the sum.
            torch.autograd.backward(loss * (counts * accelerator.num_processes))
        trained = {n: p for n, p in loss_of.named_parameters() if p.grad is not None}
        shards = {n: shard_of(p.grad) for n, p in trained.items() if p.grad is not None}
        free = largest(shards, sparsity, accelerator)
        loss_of.zero_grad(set_to_none=True)
        self._held = [(p, ~free[n], shard_of(p.detach()).clone()) for n, p in trained.items()]
        masked = sum(int(mask.sum()) for _, mask, _ in self._held)
        self.masked = sum_over_processes(masked, accelerator)
        """Weights that stay, of all processes."""

    def mask_gradients(self) -> None:
        """Let no gradient go to the weights that stay."""
        for parameter, mask, _ in self._held:
            if parameter.grad is not None:
                shard_of(parameter.grad).masked_fill_(mask, 0.0)

    @torch.no_grad()
    def restore(self, step: int, optimizer: object) -> None:
        """Put the weights that stay back, which weight decay has moved, after an update."""
        # One pass over each tensor, where a scatter would first count the places of its mask.
        for parameter, mask, start in self._held:
            shard = shard_of(parameter.detach())
            torch.where(mask, start, shard, out=shard)


def largest(
    values: Mapping[str, torch.Tensor], sparsity: float, accelerator: Accelerator
) -> dict[str, torch.Tensor]:
    """Return masks, bool, of the n - floor(sparsity * n) largest absolute values of all n in
    ``values``, shards of tensors, and of those that equal the least of them."""
    # Bits of floats that are not negative sort like the floats.
    bits = {n: t.detach().float().abs().view(torch.int32) for n, t in values.items()}

    def count_above(limit: int) -> int:
        return sum_over_processes(sum(int((t > limit).sum()) for t in bits.values()), accelerator)

    n = count_above(-1)
    keep = n - int(Fraction(str(sparsity)) * n)
    # By halving, since a sort of 10^9 weights would need tens of gigabytes.
    cut = bisect_left(range(2**31 - 1), -keep + 1, key=lambda limit: -count_above(limit))
    return {name: tensor >= cut for name, tensor in bits.items()}


def sum_over_processes(count: int, accelerator: Accelerator) -> int:
    """Return the sum of a count over all processes."""
    return int(accelerator.reduce(torch.tensor(count, device=accelerator.device), "sum"))
