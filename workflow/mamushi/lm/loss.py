"""A model's forward pass over a batch, and the language-modelling loss of what it predicts.

The logits of a large vocabulary outweigh all else that a step holds. So head and loss go together,
by parts, and the gradient with respect to a logit takes its place as soon as it is known.
"""

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

from mamushi.lm.attention import can_share, sharing_rows
from mamushi.lm.batches import Batch
from mamushi.lm.head import EditedHead, logits_of, soft_cap
from mamushi.lm.rotary import by_text
from mamushi.lm.sharding import call_gathered

ROWS = 2048  # predicted tokens whose logits are held at once
EDITED_ROWS = 512  # the same of a head with an edit, which holds several copies of them
ELEMENTS = {"cpu": 2**18, "cuda": 2**26}
"""Logits that are held in fp32 at once: what a processor's cache or what a GPU is best at."""


def run(module: nn.Module, model: PreTrainedModel, batch: Batch, **options: Any) -> Any:
    """Run ``module``, which is ``model`` or its body without the head, on the batch."""
    return call_gathered(model, partial(_run, module, model, batch, **options))


def _run(module: nn.Module, model: PreTrainedModel, batch: Batch, **options: Any) -> Any:
    if batch.documents is None:
        with by_text(model, batch.lengths):
            return module(input_ids=batch.ids, attention_mask=batch.mask, **options)
    options |= {"documents": batch.documents, "use_cache": False}
    with sharing_rows(model):
        return module(input_ids=batch.ids, position_ids=batch.positions, **options)


def batch_nll(model: PreTrainedModel, batch: Batch, *, uniform: bool = False) -> Tensor:
    """Return the negative log-likelihood, in nats, of every predicted token of a batch (predicted,)
    in fp32, or fp64 where the model is.

    A text's first token has no prediction. ``uniform`` promises that the loss will be their sum
    times a constant: gradients of a trained head then need no second look at its logits.
    """
    nll: Tensor = call_gathered(model, _batch_nll, model, batch, uniform)
    return nll


def batch_nll_and_logits(
    model: PreTrainedModel, batch: Batch, chosen: Tensor, columns: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the ``batch_nll`` (predicted,), and of the predictions ``chosen`` (n,) among them the
    logits of the tokens ``columns`` (T,): (n, T). No gradient goes through the latter."""
    both: tuple[Tensor, Tensor] = call_gathered(model, _nll_logits, model, batch, chosen, columns)
    return both


def _batch_nll(model: PreTrainedModel, batch: Batch, uniform: bool) -> Tensor:
    if _plain(model):
        return _plain_nll(_logits(model, batch), batch.targets)
    return _nll_of_states(model, _predicting(model, batch), batch.targets, uniform)


def head_inputs(model: PreTrainedModel, batch: Batch) -> Tensor:
    """Return what enters the model's head (predicted, width) where a token is predicted."""
    if not _plain(model):
        return _predicting(model, batch)
    inputs: list[Tensor] = []
    head = model.get_output_embeddings()
    handle = head.register_forward_pre_hook(lambda module, args: inputs.append(args[0]))
    try:
        _run(model, model, batch)
    finally:
        handle.remove()
    return inputs[0].flatten(0, 1)[batch.predicting]


def _nll_logits(
    model: PreTrainedModel, batch: Batch, chosen: Tensor, columns: Tensor
) -> tuple[Tensor, Tensor]:
    if _plain(model):
        logits = _logits(model, batch)
        return _plain_nll(logits, batch.targets), logits[chosen][:, columns]
    states, head = _predicting(model, batch), model.get_output_embeddings()
    nll = _nll_of_states(model, states, batch.targets, uniform=False)
    if isinstance(head, EditedHead):
        return nll, head(states[chosen], columns)
    return nll, logits_of(head, soft_cap(model), states[chosen], columns)


def _plain(model: PreTrainedModel) -> bool:
    """Say whether logits may be made of more than a linear head, a soft-cap and an edit."""
    head = type(model.get_output_embeddings())
    return not can_share(model) or head not in (nn.Linear, EditedHead)


def _logits(model: PreTrainedModel, batch: Batch) -> Tensor:
    """Return the logits (predicted, vocabulary) of the model's own forward pass."""
    logits: Tensor = _run(model, model, batch).logits.flatten(0, 1)[batch.predicting]
    return logits


def _predicting(model: PreTrainedModel, batch: Batch) -> Tensor:
    """Return the last hidden states (predicted, width) from which a token is predicted."""
    hidden = _run(model.base_model, model, batch).last_hidden_state
    states: Tensor = hidden.flatten(0, 1).index_select(0, batch.predicting)
    return states


def _nll_of_states(
    model: PreTrainedModel, predicting: Tensor, targets: Tensor, uniform: bool
) -> Tensor:
    head = model.get_output_embeddings()
    if isinstance(head, EditedHead):
        return _edited_nll(head, predicting, targets)
    losses: Tensor = _HeadLoss.apply(
        predicting,
        *(head.weight, head.bias, targets),
        *(head, soft_cap(model), uniform, torch.is_grad_enabled()),
    )
    return losses


def _edited_nll(head: EditedHead, predicting: Tensor, targets: Tensor) -> Tensor:
    """Return the NLL of ``targets`` (rows,), of whose logits a part is held at a time; for
    gradients it is computed once more."""

    def nll(hidden: Tensor, target: Tensor) -> Tensor:
        return functional.cross_entropy(head(hidden), target, reduction="none")

    blocks = zip(predicting.split(EDITED_ROWS), targets.split(EDITED_ROWS), strict=True)
    if not torch.is_grad_enabled():
        return torch.cat([nll(*block) for block in blocks])
    return torch.cat([checkpoint(nll, *block, use_reentrant=False) for block in blocks])


def _plain_nll(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the NLL of ``targets`` (rows,) under ``logits`` (rows, vocabulary), at least in fp32,
    by parts: an fp32 copy of all logits fills a GPU by itself."""
    exact = torch.promote_types(logits.dtype, torch.float32)
    nll = [
        functional.cross_entropy(block.to(exact), target, reduction="none")
        for block, target in zip(logits.split(ROWS), targets.split(ROWS), strict=True)
    ]
    return torch.cat(nll)


class _HeadLoss(torch.autograd.Function):
    """NLLs (rows,) of ``targets`` (rows,) from the hidden states (rows, width) that predict them.

    Logits z = W h + b, with ``cap`` c replaced by c tanh(z / c), ``ROWS`` of their rows at a time.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        head: nn.Linear,
        cap: float | None,
        uniform: bool,
        differentiable: bool,
    ) -> Tensor:
        of_hidden, of_weight, of_bias = (
            needed and differentiable for needed in ctx.needs_input_grad[:3]
        )
        exact = torch.promote_types(hidden.dtype, torch.float32)
        nll = torch.empty(len(hidden), dtype=exact, device=hidden.device)
        # A loss that weighs its rows differently can be known only when it asks for gradients.
        ctx.later = (of_weight or of_bias) and not uniform
        now = (of_hidden or of_weight or of_bias) and not ctx.later
        gradients = (
            _Gradients(hidden, weight, bias, (of_hidden, of_weight, of_bias)) if now else None
        )
        # What watches the head as a module would look for a graph behind its input.
        _by_parts(hidden.detach(), targets, head, cap, nll, gradients)
        ctx.head, ctx.cap, ctx.gradients = head, cap, gradients
        ctx.cast = torch.is_autocast_enabled(hidden.device.type)
        if ctx.later:
            ctx.save_for_backward(hidden, weight, bias, targets)
        return nll

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        if ctx.later:
            hidden, weight, bias, targets = ctx.saved_tensors
            gradients = _Gradients(hidden, weight, bias, ctx.needs_input_grad[:3])
            with torch.autocast(hidden.device.type, enabled=ctx.cast):
                unused = torch.empty_like(gradient)
                _by_parts(hidden, targets, ctx.head, ctx.cap, unused, gradients, gradient)
            gradients.scale(None)
        else:
            gradients, ctx.gradients = ctx.gradients, None
            gradients.scale(gradient)
        return (gradients.hidden, gradients.weight, gradients.bias, *(None,) * 5)


class _Gradients:
    """With respect to hidden states, weight and bias of a head, from those to its logits."""

    def __init__(
        self, hidden: Tensor, weight: Tensor, bias: Tensor | None, needed: tuple[bool, ...]
    ) -> None:
        self._states, self._weight, self._trains = hidden, weight, needed[1]
        self.hidden = torch.empty_like(hidden) if needed[0] else None
        self.weight: Tensor | None = None
        """In the dtype of the logits as long as it is that of one part alone."""
        self.bias = torch.zeros_like(bias) if needed[2] and bias is not None else None

    def add(self, rows: slice, logits: Tensor) -> None:
        """Take the gradients to the logits of these rows."""
        if self.hidden is not None:
            # Within an autocast that goes on, the weight has been cast for the logits already.
            cast = logits.dtype != self._weight.dtype
            with torch.autocast(logits.device.type, logits.dtype if cast else None, enabled=cast):
                self.hidden[rows] = logits @ self._weight
        if self._trains:
            product = logits.t() @ self._states[rows].to(logits.dtype)
            if self.weight is not None:
                product = self.weight.to(self._weight.dtype).add_(product)
            self.weight = product
        if self.bias is not None:
            self.bias += logits.sum(0)

    def scale(self, gradient: Tensor | None) -> None:
        """Multiply by ``gradient`` (rows,), all equal if a weight is trained, unless that was done
        to the logits. Nothing can be added after this."""
        if self._trains:
            self.weight = self._weight_gradient(None if gradient is None else gradient[:1])
        if gradient is None:
            return
        if self.hidden is not None:
            self.hidden *= gradient[:, None]
        if self.bias is not None and len(gradient):
            self.bias *= gradient[0]

    def _weight_gradient(self, factor: Tensor | None) -> Tensor:
        """Return the weight's gradient in its dtype, times ``factor`` (1,)."""
        dtype = self._weight.dtype
        if self.weight is None:
            return torch.zeros_like(self._weight)
        if factor is None:
            return self.weight.to(dtype)
        # In one pass: by its shape, the factor's dtype counts.
        same = self.weight.dtype == dtype
        return self.weight.mul_(factor) if same else self.weight * factor.to(dtype)


def _by_parts(
    hidden: Tensor,
    targets: Tensor,
    head: nn.Linear,
    cap: float | None,
    nll: Tensor,
    gradients: _Gradients | None,
    factor: Tensor | None = None,
) -> None:
    """Write the NLLs to ``nll`` (rows,) and add their gradients, times ``factor`` (rows,), to
    ``gradients``, where they are asked for."""
    elements = ELEMENTS["cpu" if hidden.device.type == "cpu" else "cuda"]
    step = max(1, elements // max(1, head.out_features))
    for begin in range(0, len(hidden), ROWS):
        rows = slice(begin, begin + ROWS)
        logits = head(hidden[rows])
        pieces = zip(
            logits.split(step), targets[rows, None].split(step), nll[rows].split(step), strict=True
        )
        for piece, target, out in pieces:
            out.copy_(nll_in_place(piece, target, cap, out.dtype, gradients is not None))
        if factor is not None:
            logits *= factor[rows, None]
        if gradients is not None:
            gradients.add(rows, logits)


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
    """``forward`` gives the weighed *sum* of the NLL over the predicted tokens of a micro-batch:
    the caller divides by the weight of the whole step, whatever its micro-batches and devices."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: Batch) -> Tensor:
        if batch.weights is None:
            return batch_nll(self.model, batch, uniform=True).sum()
        return (batch_nll(self.model, batch) * batch.weights).sum()
