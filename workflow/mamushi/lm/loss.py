"""A model's forward pass over a batch, and the language-modelling loss of what it predicts.

The logits of a large vocabulary outweigh all else that a step holds. So head and loss go together,
by parts, and the gradient with respect to a logit takes its place as soon as it is known.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

from mamushi.lm.attention import can_share, share_rows
from mamushi.lm.batches import Batch
from mamushi.lm.head import EditedHead, logits_of, soft_cap
from mamushi.lm.parameters import body
from mamushi.lm.rotary import by_text
from mamushi.lm.sharding import call_gathered

ROWS = 2048  # predicted tokens whose logits are held at once
EDITED_ROWS = 512  # the same of a head with an edit, which holds several copies of them
ELEMENTS = {"cpu": 2**18, "cuda": 2**26}
"""Logits that are held in fp32 at once: what a processor's cache or what a GPU is best at."""


def run(module: nn.Module, model: PreTrainedModel, batch: Batch, **options: Any) -> Any:
    """Run ``module``, which is ``model`` or its body without the head, on the batch."""
    return call_gathered(model, partial(_forward_pass, module, model, batch, **options))


def _forward_pass(module: nn.Module, model: PreTrainedModel, batch: Batch, **options: Any) -> Any:
    if batch.documents is None:
        with by_text(model, batch.lengths):
            return module(input_ids=batch.ids, attention_mask=batch.mask, **options)
    options |= {"documents": batch.documents, "use_cache": False}
    with share_rows(model):
        return module(input_ids=batch.ids, position_ids=batch.positions, **options)


def batch_nll(model: PreTrainedModel, batch: Batch, *, uniform: bool = False) -> Tensor:
    """Return the negative log-likelihood, in nats, of every predicted token of a batch (predicted,)
    in fp32, or fp64 where the model is.

    A text's first token has no prediction. ``uniform`` promises that the loss will be their sum
    times a constant: gradients of a trained head then need no second look at its logits.
    """
    nll: Tensor = call_gathered(model, _nll_and_logits, model, batch, uniform)[0]
    return nll


def batch_nll_and_logits(
    model: PreTrainedModel, batch: Batch, *tables: tuple[Tensor, Tensor]
) -> tuple[Tensor, list[Tensor]]:
    """Return the ``batch_nll`` (predicted,) and a list of logits (n, T), without gradient, one for
    each of ``tables``: a pair of the numbers of predictions (n,) and token ids (T,)."""
    both: tuple[Tensor, list[Tensor]] = call_gathered(
        model, _nll_and_logits, model, batch, False, *tables
    )
    return both


def _nll_and_logits(
    model: PreTrainedModel,
    batch: Batch,
    uniform: bool,
    *tables: tuple[Tensor, Tensor],
) -> tuple[Tensor, list[Tensor]]:
    head, targets, cap = model.get_output_embeddings(), batch.targets, soft_cap(model)
    if _needs_whole_model(model):
        logits: Tensor = _forward_pass(model, model, batch).logits.flatten(0, 1)[batch.predicting]
        nll = _nll_by_blocks(lambda block: block, logits, targets, ROWS)
        return nll, [logits[chosen][:, columns] for chosen, columns in tables]
    states = predicting_states(model, batch)
    read: Callable[..., Tensor] = partial(logits_of, head, cap)
    if isinstance(head, EditedHead):
        read, nll = head, _nll_by_blocks(head, states, targets, EDITED_ROWS)
    elif torch.is_grad_enabled():
        nll = _HeadLoss.apply(states, head.weight, head.bias, targets, cap, uniform)
    else:
        nll, _ = _nll_and_gradients(states, head.weight, head.bias, targets, cap)
    return nll, [read(states[chosen], columns=columns) for chosen, columns in tables]


def _needs_whole_model(model: PreTrainedModel) -> bool:
    """Return whether logits may be made of more than a linear head, a soft-cap and an edit."""
    head = model.get_output_embeddings()
    return not can_share(model) or not (type(head) is nn.Linear or isinstance(head, EditedHead))


def predicting_states(model: PreTrainedModel, batch: Batch) -> Tensor:
    """Return the last hidden states (predicted, width) from which a token is predicted."""
    hidden: Tensor = _forward_pass(body(model), model, batch).last_hidden_state
    return hidden.flatten(0, 1).index_select(0, batch.predicting)


def _nll_by_blocks(
    read: Callable[[Tensor], Tensor], inputs: Tensor, targets: Tensor, rows: int
) -> Tensor:
    """Return the NLL of ``targets`` (n,), at least in fp32, under the logits that ``read`` makes of
    ``inputs`` (n, ...), so many ``rows`` at a time; for gradients they are made once more."""

    def nll(block: Tensor, target: Tensor) -> Tensor:
        logits = read(block)
        exact = torch.promote_types(logits.dtype, torch.float32)
        return functional.cross_entropy(logits.to(exact), target, reduction="none")

    blocks = zip(inputs.split(rows), targets.split(rows), strict=True)
    if torch.is_grad_enabled():
        return torch.cat([checkpoint(nll, *block, use_reentrant=False) for block in blocks])
    return torch.cat([nll(*block) for block in blocks])


class _HeadLoss(torch.autograd.Function):
    """The NLLs (rows,) of ``_nll_and_gradients``. Gradients come with them, unless a head is
    trained by a loss that may weigh its rows differently, known only when it asks for them."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        cap: float | None,
        uniform: bool,
    ) -> Tensor:
        inputs, needed = (hidden, weight, bias, targets), ctx.needs_input_grad[:3]
        ctx.cap, ctx.cast = cap, torch.is_autocast_enabled(hidden.device.type)
        ctx.later = any(needed[1:]) and not uniform
        if ctx.later:
            ctx.save_for_backward(*inputs)
            needed = (False, False, False)
        nll, ctx.gradients = _nll_and_gradients(*inputs, cap, needed)
        return nll

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        if ctx.later:
            how = (*ctx.saved_tensors, ctx.cap, ctx.needs_input_grad[:3], gradient)
            with torch.autocast(gradient.device.type, enabled=ctx.cast):
                gradients = _nll_and_gradients(*how)[1]
        else:
            # Those of a head have one factor for all rows, if there are any.
            factors = (gradient[:, None], *[gradient[:1].sum()] * 2)
            gradients = tuple(
                None if of_sum is None else of_sum.to(gradient.dtype).mul_(factor)
                for of_sum, factor in zip(ctx.gradients, factors, strict=True)
            )
            del ctx.gradients
        return (*gradients, None, None, None)


def _nll_and_gradients(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    cap: float | None,
    needed: Sequence[bool] = (False, False, False),
    factor: Tensor | None = None,
) -> tuple[Tensor, tuple[Tensor | None, ...]]:
    """Return the NLLs (rows,) of ``targets`` (rows,) from the hidden states (rows, width) that
    predict them, and the gradients of their sum, each times ``factor`` (rows,), with respect to
    hidden states, weight and bias, where they are ``needed``: the weight's maybe in less than its
    precision. Logits are W h + b, or c tanh((W h + b) / c) of a ``cap`` c, ``ROWS`` at a time."""
    exact = torch.promote_types(hidden.dtype, torch.float32)
    nll = torch.empty(len(hidden), dtype=exact, device=hidden.device)
    of_hidden = torch.empty_like(hidden) if needed[0] else None
    of_weight: Tensor | None = None
    of_bias = torch.zeros_like(bias) if needed[2] and bias is not None else None
    step = max(1, ELEMENTS["cpu" if hidden.device.type == "cpu" else "cuda"] // len(weight))
    for begin in range(0, max(1, len(hidden)), ROWS):
        rows = slice(begin, begin + ROWS)
        logits = functional.linear(hidden[rows], weight, bias)
        pieces = (x.split(step) for x in (logits, targets[rows, None], nll[rows]))
        for piece, target, out in zip(*pieces, strict=True):
            out.copy_(nll_in_place(piece, target, cap, exact, any(needed)))
        if factor is not None:
            logits *= factor[rows, None]
        if of_hidden is not None:
            of_hidden[rows] = logits @ weight
        if needed[1]:
            product = logits.t() @ hidden[rows].to(logits.dtype)
            earlier = of_weight
            of_weight = product if earlier is None else earlier.to(weight.dtype).add_(product)
        if of_bias is not None:
            of_bias += logits.sum(0)
    return nll, (of_hidden, of_weight, of_bias)


def nll_in_place(
    logits: Tensor, target: Tensor, cap: float | None, exact: torch.dtype, gradient: bool
) -> Tensor:
    """Return the NLLs (rows,) of ``target`` (rows, 1), computed in ``exact``; put their gradients
    over ``logits``, if asked, or nothing of use. Casts go with the first operation that reads and
    with the last that writes, instead of passes over memory of their own."""
    scaled, slope = logits, None
    if cap is not None:
        scaled = scaled.to(exact).div_(cap).tanh_()
        slope = 1.0 - scaled.square() if gradient else None
        scaled.mul_(cap)
    # What is picked is as exact as what it is picked from.
    true, top = (x.to(exact) for x in (scaled.gather(1, target), scaled.amax(1, keepdim=True)))
    # Where the head computes in this precision it is no copy.
    odds = scaled.sub_(top) if scaled.dtype == exact else scaled - top
    total = odds.exp_().sum(1, keepdim=True)
    nll = (total.log() + top - true)[:, 0]
    if not gradient:
        return nll
    at_target = odds.gather(1, target).div_(total) - 1.0
    if slope is not None:
        odds.div_(total).scatter_(1, target, at_target)
        torch.mul(odds, slope, out=logits)
    else:
        torch.div(odds, total, out=logits)
        logits.scatter_(1, target, at_target.to(logits.dtype))
    return nll


class TokenLoss(nn.Module):
    """``forward`` gives the *sum* of the NLL over the predicted tokens of a micro-batch: the caller
    divides by the number of the whole step, whatever its micro-batches and devices."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: Batch) -> Tensor:
        return batch_nll(self.model, batch, uniform=True).sum()
