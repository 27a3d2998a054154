"""Weights rounded to a few bits, as a model is that is handed on in a smaller format.

Unlearning that moves weights by less than half a step of the rounding is undone by it (Zhang et al.
2024, Catastrophic Failure of LLM Unlearning via Quantization). This is the plainest rounding that
is used: to the nearest of equally spaced values, symmetric around 0, with a scale for each group of
weights of a row by its largest absolute value. Methods that choose values by data (GPTQ, AWQ) or
space them unequally (NF4) move other weights by other amounts.
"""

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
    """A matrix (out, in) of ``bits``-bit weights, in its own dtype.

    ``w = s round(w / s)``, ``s = max|w| / (2^(bits - 1) - 1)`` over ``GROUP`` neighbours of a row,
    the last group of which may be shorter; computed in fp32, halves to even. 2^bits - 1 values of
    the 2^bits are used, from minus to plus the largest.
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

    These are the linear layers of the transformer blocks; embeddings, head, norms and biases stay,
    as in formats in use. Weights are rounded anew in each forward pass, one matrix at a time, so
    that a model of any size needs no second copy, and are bit for bit themselves after the block.
    """
    layers = [each for each in decoder_blocks(model)[1].modules() if isinstance(each, nn.Linear)]
    try:
        for layer in layers:
            # On the object, before its class.
            layer.__dict__["forward"] = partial(_forward, layer, bits)
        yield len(layers)
    finally:
        for layer in layers:
            layer.__dict__.pop("forward", None)


def _forward(layer: nn.Linear, bits: int, states: Tensor) -> Tensor:
    return linear(states, rounded(layer.weight, bits), layer.bias)
