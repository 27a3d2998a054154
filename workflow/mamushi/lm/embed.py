"""The embedding map: a text's hidden states in the contaminated model, pooled to one vector."""

from collections.abc import Sequence

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
    ends = np.cumsum(batch.lengths)
    if pooling == "last":
        return flat[to_device(ends - 1, flat.device)].float()
    counted = batch.lengths
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
    layers: Sequence[int],
    skip_first: bool,
    batch_tokens: int,
    accelerator: Accelerator,
) -> NDArray[np.float16]:
    """Return embeddings (layers, texts, width) of the texts, in their order, from one forward pass.

    A layer is the index of a hidden state: 0 is the input embeddings, n the output of the n-th
    block, and -1 the final one, after the final norm. Raises ``UserError`` for values that float16
    cannot hold.
    """
    blocks = int(model.config.get_text_config(decoder=True).num_hidden_layers)
    if not all(-blocks - 1 <= layer <= blocks for layer in layers):
        raise ValueError(f"embedding.layer: a model of {blocks} blocks has no layer of {layers}")
    final = {-1, blocks}
    inner = not final.issuperset(layers)

    vectors = np.zeros((len(layers), len(texts), 0), dtype=np.float16)
    passes = model_batches(model, texts, batch_tokens, accelerator, "embed")
    for rows, batch, counts in passes:
        with accelerator.autocast():
            output = run(body(model), model, batch, output_hidden_states=inner)
        states = [
            output.last_hidden_state if layer in final else output.hidden_states[layer]
            for layer in layers
        ]
        # Two widths, as OPT-350m has, or several streams a token do not stack: torch says so.
        pooled = torch.stack([pool(of, batch, pooling, skip_first=skip_first) for of in states])
        if not vectors.size:
            vectors = np.zeros((*vectors.shape[:2], pooled.shape[2]), dtype=np.float16)
        if counts:
            vectors[:, rows] = pooled.cpu().numpy()
    of_processes = torch.from_numpy(vectors).to(accelerator.device)
    vectors = accelerator.reduce(of_processes, "sum").cpu().numpy()
    if not np.isfinite(vectors).all():
        row = int(np.flatnonzero(~np.isfinite(vectors).all(axis=(0, 2)))[0])
        problem = "its embedding has values that are not finite in float16: the model has diverged"
        raise UserError(problem, where=f"example {texts.ids[row]}")
    return vectors
