"""Weights rounded to a few bits, as a model is that is handed on in a smaller format, which undoes
small steps of unlearning (Zhang et al. 2024, Catastrophic Failure of LLM Unlearning via
Quantization). Methods that choose values by data (GPTQ, AWQ) move other weights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, pad
from transformers import PreTrainedModel

from mamushi.lm.parameters import decoder_blocks

GROUP = 64
"""Weights of a row that share a scale."""


def rounded(weight: Tensor, bits: int) -> Tensor:
    """Round a matrix (out, in) to ``bits``-bit weights, in its own dtype.

    ``w = s round(w / s)``, ``s = max|w| / (2^(bits - 1) - 1)`` over ``GROUP`` neighbours of a row,
    the last group of which may be shorter; computed in fp32, halves to even.
    """
    width = weight.shape[1]
    groups = pad(weight.float(), (0, -width % GROUP)).unflatten(1, (-1, GROUP))
    scale = groups.abs().amax(dim=2, keepdim=True) / (2 ** (bits - 1) - 1)
    # A group of zeros stays one.
    scale = torch.where(scale > 0, scale, 1.0)
    return ((groups / scale).round() * scale).flatten(1)[:, :width].to(weight.dtype)


@contextmanager
def rounding(model: PreTrainedModel, bits: int) -> Iterator[int]:
    """Within the block, ``model`` computes with rounded weights; gives how many matrices are.

    These are the linear modules of the transformer blocks. Weights are rounded anew in each forward
    pass, one matrix at a time, and are bit for bit themselves after the block.
    """
    modules = [m for m in decoder_blocks(model)[1].modules() if isinstance(m, nn.Linear)]
    try:
        for module in modules:
            # On the object, before its class.
            module.__dict__["forward"] = partial(_forward, module, bits)
        yield len(modules)
    finally:
        for module in modules:
            module.__dict__.pop("forward", None)


def _forward(module: nn.Linear, bits: int, states: Tensor) -> Tensor:
    return linear(states, rounded(module.weight, bits), module.bias)
