"""Likelihoods of texts under a model, and perplexity: token-weighted, exp of the mean NLL."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import torch
from accelerate import Accelerator
from numpy.typing import NDArray
from transformers import PreTrainedModel

from mamushi.errors import UserError
from mamushi.io.tables import DOMAINS
from mamushi.lm.attention import to_device
from mamushi.lm.batches import model_batches
from mamushi.lm.loss import batch_nll
from mamushi.lm.tokens import TokenSet, offsets_of, places_of_rows


class TextNll(NamedTuple):
    """Sum of the NLL in nats (texts,) float64 and number of predicted tokens (texts,) per text."""

    nll: NDArray[np.float64]
    tokens: NDArray[np.int64]
    deep: NDArray[np.float64] | None = None
    """With word frequencies taken out, of the texts that were raked, in nats; NaN of others."""


def require_domains(texts: TokenSet) -> None:
    """Raise ``UserError`` unless both domains have a held-out token to predict."""
    for domain in DOMAINS:
        if not texts.counted[texts.domains == domain].any():
            raise UserError(f"the evaluation section has no {domain} text with a token to predict")


def text_nll(
    model: PreTrainedModel,
    texts: TokenSet,
    batch_tokens: int,
    accelerator: Accelerator,
    reader: Any = None,
) -> TextNll:
    """Return the NLL of every text; one without a predicted token counts zero of both. A ``reader``
    computes those of the batches, by ``batch_nll``, and from the same logits ``nll``, the deep
    ones."""
    losses = token_nll(model, texts, batch_tokens, accelerator, reader)
    of_texts = np.repeat(np.arange(len(texts)), texts.counted)
    sums = np.bincount(of_texts, losses, len(texts)).astype(np.float64)
    return TextNll(sums, texts.counted, reader.nll() if reader else None)


@torch.no_grad()
def token_nll(
    model: PreTrainedModel,
    texts: TokenSet,
    batch_tokens: int,
    accelerator: Accelerator,
    reader: Any = None,
) -> NDArray[np.float64]:
    """Return the NLL in nats of every predicted token, text after text: (predicted,). Processes
    share the texts, and all have all of it. The ``reader`` is that of ``text_nll``."""
    offsets = offsets_of(texts.counted)
    losses = torch.zeros(int(offsets[-1]), dtype=torch.float64, device=accelerator.device)
    for rows, batch, is_new in model_batches(model, texts, batch_tokens, accelerator, "perplexity"):
        with accelerator.autocast():
            if reader is None:
                nll = batch_nll(model, batch)
            else:
                nll = reader.batch_nll(model, rows, batch, is_new)
        if is_new:
            places = places_of_rows(offsets[rows], texts.counted[rows])
            losses[to_device(places, nll.device)] = nll.double()
    summed: NDArray[np.float64] = accelerator.reduce(losses, "sum").cpu().numpy()
    return summed


def perplexity_table(result: TextNll, domains: NDArray[np.str_]) -> Mapping[str, list[Any]]:
    """Return the columns of the artifact ``perplexity``: one row per domain, PPL = exp(sum of NLL /
    predicted tokens). Raises ``UserError`` when it is not finite: the model diverged."""
    names = ("domain", "texts", "tokens", "nll", "perplexity")
    table: dict[str, list[Any]] = {name: [] for name in names}
    for domain in DOMAINS:
        rows = domains == domain
        tokens = int(result.tokens[rows].sum())
        mean = float(result.nll[rows].sum()) / tokens
        if not mean <= 700:
            problem = f"the mean NLL of the {domain} texts is {mean}: the model has diverged"
            raise UserError(problem, do="lower its learning_rate")
        row = (domain, int(rows.sum()), tokens, mean, math.exp(mean))
        for name, value in zip(names, row, strict=True):
            table[name].append(value)
    return table


def nll_table(result: TextNll, ids: NDArray[np.str_]) -> Mapping[str, Any]:
    """Return the columns of the artifact ``nll``: one row per text, in their order."""
    deep = np.full(len(ids), np.nan) if result.deep is None else result.deep
    deep = pa.array(deep, mask=np.isnan(deep))
    return {"id": ids, "tokens": result.tokens, "nll": result.nll, "deep": deep}
