"""Likelihoods of texts under a model, from which membership inference starts."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
import torch
from accelerate import Accelerator
from numpy.typing import NDArray
from transformers import PreTrainedModel

from mamushi.errors import UserError
from mamushi.lm.batches import model_batches
from mamushi.lm.loss import ROWS, run
from mamushi.lm.tokens import TokenSet

PART = 512
"""Predicted tokens whose whole distributions are looked at at once."""


def zlib_bytes(texts: Sequence[str]) -> NDArray[np.int64]:
    """Return the bytes of each text when zlib has compressed it, (texts,)."""
    return np.array([len(zlib.compress(text.encode())) for text in texts], dtype=np.int64)


@torch.no_grad()
def text_statistics(
    model: PreTrainedModel,
    texts: TokenSet,
    batch_tokens: int,
    accelerator: Accelerator,
    least: float,
) -> dict[str, NDArray[np.float64]]:
    """Return ``nll``, ``min_k`` and ``min_k_plus`` of every text, (texts,) each.

    ``nll`` is the sum over predicted tokens, in nats. ``min_k`` is the mean log-probability of the
    share ``least`` of the tokens (rounded down, at least one) that the model finds least likely
    (Min-K%, Shi et al. 2024). ``min_k_plus`` is the same of each token's log-probability less the
    mean of the log-probabilities of all tokens in its place under the model, over their standard
    deviation (Min-K%++, Zhang et al. 2024). NaN for a text without a predicted token. Raises
    ``UserError`` when a number is not finite.
    """
    found = {
        name: np.full(len(texts), np.nan, dtype=np.float64)
        for name in ("nll", "min_k", "min_k_plus")
    }
    passes = model_batches(model, texts, min(batch_tokens, ROWS), accelerator, "likelihoods")
    for rows, batch, _ in passes:
        with accelerator.autocast():
            logits = run(model, model, batch).logits.flatten(0, 1)
        places, targets = batch.predicting.split(PART), batch.targets.split(PART)
        parts = [_tokens(logits[p], target) for p, target in zip(places, targets, strict=True)]
        both = torch.cat(parts, dim=1).double().cpu().numpy()
        ends = np.cumsum(np.maximum(batch.lengths - 1, 0))[:-1]
        for row, each in zip(rows.tolist(), np.split(both, ends, axis=1), strict=True):
            if each.shape[1]:
                found["nll"][row] = -each[0].sum()
                found["min_k"][row] = _mean_of_least(each[0], least)
                found["min_k_plus"][row] = _mean_of_least(each[1], least)
    counted = texts.lengths > 1
    if not all(np.isfinite(values[counted]).all() for values in found.values()):
        raise UserError(
            "the likelihood of a text is not finite: the model diverged",
            do="lower its learning rate",
        )
    return found


def _tokens(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return the targets' log-probabilities, and these standardized: (2, rows) in fp32."""
    every = torch.log_softmax(logits.float(), dim=-1)
    share = every.exp()
    # A token that cannot be has no part in the mean.
    known = torch.where(share > 0, every, 0.0)
    mean = (share * known).sum(-1)
    spread = (share * (known - mean[:, None]).square()).sum(-1).sqrt()
    true = every.gather(-1, targets[:, None])[:, 0]
    return torch.stack([true, (true - mean) / spread.clamp(min=1e-6)])


def _mean_of_least(values: NDArray[np.float64], least: float) -> float:
    count = max(1, int(len(values) * least))
    return float(np.sort(values)[:count].mean())
