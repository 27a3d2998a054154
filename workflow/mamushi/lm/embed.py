"""The embedding map: a text's hidden states in the contaminated model, pooled to one vector."""

from __future__ import annotations

import numpy as np
import torch
from accelerate import Accelerator
from numpy.typing import NDArray
from transformers import PreTrainedModel

from mamushi.errors import UserError
from mamushi.lm.batches import by_length, pad
from mamushi.lm.tokens import TokenSet
from mamushi.progress import Progress


def pool(hidden: torch.Tensor, attention_mask: torch.Tensor, pooling: str) -> torch.Tensor:
    """One vector per text, in fp32: the ``mean`` over its real tokens or the ``last`` of them.

    ``hidden`` (texts, length, width), ``attention_mask`` (texts, length), padded on the right.
    Returns (texts, width).
    """
    if pooling == "last":
        last = attention_mask.sum(dim=1) - 1
        return hidden[torch.arange(len(hidden), device=hidden.device), last].float()
    weights = attention_mask.float()
    total = torch.einsum("tlw,tl->tw", hidden.float(), weights)
    return total / weights.sum(dim=1, keepdim=True)


@torch.inference_mode()
def embed(
    model: PreTrainedModel,
    texts: TokenSet,
    *,
    pooling: str,
    layer: int,
    batch_tokens: int,
    accelerator: Accelerator,
) -> NDArray[np.float16]:
    """Embeddings (texts, width) of the texts, in their order.

    ``layer`` -1 is the final hidden state, after the final norm; others index the hidden states
    from the input embeddings (0) on. Raises ``UserError`` for a layer that the model does not have,
    a text without tokens, and values that float16 cannot hold.
    """
    model.eval()
    layers = int(model.config.num_hidden_layers)
    if not -layers - 1 <= layer <= layers:
        raise UserError(
            f"embedding.layer: {layer} is not a layer of a model with {layers} blocks",
            do=f"give a number from {-layers - 1} to {layers}",
        )
    if (empty := np.flatnonzero(texts.lengths == 0)).size:
        raise UserError(
            "the tokenizer gives no token for this text, so it has no embedding",
            where=f"example {texts.ids[empty[0]]}",
            do="remove it from the raw data",
        )
    final = layer in (-1, layers)
    vectors = np.empty((len(texts), int(model.config.hidden_size)), dtype=np.float16)
    with Progress(len(texts), "embed", "text") as progress:
        for rows in by_length(texts.lengths, batch_tokens):
            ids, mask = pad([texts[i] for i in rows], accelerator.device)
            with accelerator.autocast():
                output = model.base_model(
                    input_ids=ids, attention_mask=mask, output_hidden_states=not final
                )
            hidden = output.last_hidden_state if final else output.hidden_states[layer]
            vectors[rows] = pool(hidden, mask, pooling).cpu().numpy()
            progress.advance(len(rows))
    if not np.isfinite(vectors).all():
        row = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
        raise UserError(
            "its embedding has values that are not finite in float16",
            where=f"example {texts.ids[row]}",
            do="the model has diverged: lower training.learning_rate",
        )
    return vectors
