"""The embedding map: a text's hidden states in the contaminated model, pooled to one vector."""

import numpy as np
import torch
from accelerate import Accelerator
from numpy.typing import NDArray
from transformers import PreTrainedModel

from mamushi.errors import UserError
from mamushi.lm.attention import to_device
from mamushi.lm.batches import Batch, model_batches
from mamushi.lm.loss import run
from mamushi.lm.parameters import body
from mamushi.lm.tokens import TokenSet


def pool(hidden: torch.Tensor, batch: Batch, pooling: str, *, skip_first: bool) -> torch.Tensor:
    """Return a vector (texts, width) per text, in fp32: the ``mean`` over its tokens or the
    ``last`` of them in ``hidden`` (rows, length, width). ``skip_first`` leaves the first token, the
    BOS, out of the mean of a text that has others."""
    flat = batch.flat(hidden)
    counted, ends = batch.lengths, np.cumsum(batch.lengths)
    if pooling == "last":
        return flat[to_device(ends - 1, flat.device)].float()
    text = np.repeat(np.arange(len(counted)), counted)
    if skip_first:
        # Left out rather than subtracted: its state can be a hundred times as large as the others.
        left = np.ones(len(text), dtype=bool)
        left[(ends - counted)[counted > 1]] = False
        flat, text = flat[to_device(np.flatnonzero(left), flat.device)], text[left]
        counted = np.bincount(text, minlength=len(counted))
    total = torch.zeros(len(counted), flat.shape[1], device=flat.device)
    total.index_add_(0, to_device(text, flat.device), flat.float())
    return total / to_device(counted, flat.device)[:, None]


@torch.no_grad()
def embed(
    model: PreTrainedModel,
    texts: TokenSet,
    *,
    pooling: str,
    layer: int,
    skip_first: bool,
    batch_tokens: int,
    accelerator: Accelerator,
) -> NDArray[np.float16]:
    """Return embeddings (texts, width) of the texts, in their order.

    A layer is the index of a hidden state: 0 is the input embeddings, n the output of the n-th
    block, and -1 the final one, after the final norm. Raises ``UserError`` for values that float16
    cannot hold.
    """
    blocks = int(model.config.get_text_config(decoder=True).num_hidden_layers)
    if not -blocks - 1 <= layer <= blocks:
        raise ValueError(f"embedding.layer: a model of {blocks} blocks has no layer {layer}")
    inner = layer not in (-1, blocks)
    vectors = np.zeros((len(texts), 0), dtype=np.float16)
    for rows, batch, counts in model_batches(model, texts, batch_tokens, accelerator, "embed"):
        with accelerator.autocast():
            output = run(body(model), model, batch, output_hidden_states=inner)
        states = output.hidden_states[layer] if inner else output.last_hidden_state
        pooled = pool(states, batch, pooling, skip_first=skip_first)
        if not vectors.size:
            vectors = np.zeros((len(texts), pooled.shape[1]), dtype=np.float16)
        if counts:
            vectors[rows] = pooled.cpu().numpy()
    of_processes = torch.from_numpy(vectors).to(accelerator.device)
    vectors = accelerator.reduce(of_processes, "sum").cpu().numpy()
    if not np.isfinite(vectors).all():
        row = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
        problem = "its embedding has values that are not finite in float16: the model has diverged"
        raise UserError(problem, where=f"example {texts.ids[row]}")
    return vectors
