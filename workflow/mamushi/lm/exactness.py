"""Whether a model may be run in batches at all: tried once on a few tokens, before any real work.

Batches are exact for a model that reads a text from left to right, whatever stands behind it. That
holds of decoders, recurrent ones too, and not of encoders that transformers opens as such (BERT
without ``is_decoder``), nor of models that draw at random in what they attend to.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import partial
from weakref import WeakSet

import torch
from accelerate import Accelerator
from torch import Tensor, nn
from transformers import PreTrainedModel

from mamushi.errors import UserError, located
from mamushi.lm.attention import supports
from mamushi.lm.parameters import body
from mamushi.lm.rotary import by_text
from mamushi.lm.sharding import call_gathered

READ, BEHIND = 3, 3
"""Tokens of the text that is tried, and behind it."""
EXACT = 1e-3
"""Largest difference, as a share of the largest number, in fp32."""
ROUNDED, RESHAPED = 0.02, 0.2
"""In half precision: between rows of one batch, which round alike, and to a batch of one row."""
DECODER = "choose a decoder, which reads from left to right"

_exact: WeakSet[nn.Module] = WeakSet()


def require_exact(model: PreTrainedModel, accelerator: Accelerator) -> None:
    """Raise ``UserError`` for a model whose states of a text depend on what stands behind it, be
    that padding or other tokens. Tried once for each model, unless its texts can share a row, which
    says as much; all processes have to call."""
    if model in _exact or supports(model):
        return
    _try(model, accelerator.device, accelerator.autocast())
    _exact.add(model)


def require_exact_here(model: PreTrainedModel) -> None:
    """Raise the same for a model on the CPU in fp32, and draw no random number."""
    with torch.random.fork_rng(devices=[]):
        _try(model, torch.device("cpu"), nullcontext())


@torch.no_grad()
def _try(
    model: PreTrainedModel, device: torch.device, cast: AbstractContextManager[object]
) -> None:
    trains = model.training
    model.eval()
    try:
        with cast, located(f"{type(model).__name__} is tried on plain text"):
            rounded = torch.is_autocast_enabled(device.type) or _is_half(model)
            batched, alone = call_gathered(model, partial(_states, model, device))
    finally:
        model.train(trains)
    largest = max(float(alone.abs().max()), 1e-30)
    beside = float((batched - batched[:1]).abs().max()) / largest
    apart = float((batched - alone).abs().max()) / largest
    # A model that has diverged gives no number: what measures it says so.
    if beside > (ROUNDED if rounded else EXACT) or apart > (RESHAPED if rounded else EXACT):
        problem = "what this model makes of a text depends on what stands behind it"
        raise UserError(problem, where=type(model).__name__, do=DECODER)


def _is_half(model: PreTrainedModel) -> bool:
    return any(p.dtype in (torch.bfloat16, torch.float16) for p in model.parameters())


def _states(model: PreTrainedModel, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the final states of a text among others, (3, READ, ...), and alone, (1, READ, ...)."""
    text = model.config.get_text_config(decoder=True)
    positions = getattr(text, "max_position_embeddings", None) or READ + BEHIND
    length = max(READ + 1, min(READ + BEHIND, positions))
    ids = torch.arange(1, length + 1).repeat(3, 1)
    # The same text three times: before more tokens, before padding, and before other tokens.
    ids[1, READ:], ids[2, READ:] = 0, ids[0, READ:].flip(0) + 1
    ids %= model.get_input_embeddings().num_embeddings
    mask = torch.ones_like(ids)
    mask[1, READ:] = 0
    lengths = mask.sum(1).numpy()
    ids, mask = ids.to(device), mask.to(device)
    with by_text(model, lengths):
        batched = body(model)(input_ids=ids, attention_mask=mask).last_hidden_state[:, :READ]
    with by_text(model, lengths[1:2]):
        alone = body(model)(input_ids=ids[:1, :READ]).last_hidden_state
    return batched.float(), alone.float()
