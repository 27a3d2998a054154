"""The language-modelling loss, as a module so that `accelerate` can wrap it whole."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional
from transformers import PreTrainedModel

ROWS = 2048
"""Predicted tokens whose logits are held in fp32 at once."""


def token_nll(
    logits: torch.Tensor, input_ids: torch.Tensor, attention_mask: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Negative log-likelihood, in nats, of every predicted token.

    A text's first token has no prediction, and padding is masked by ``attention_mask`` and not by
    its id, because the padding token is the end-of-text token for some models.

    ``logits`` (texts, length, vocabulary), ``input_ids`` and ``attention_mask`` (texts, length).
    Returns the NLLs (predicted,) in fp32 and the row of the text that each belongs to (predicted,).
    """
    predicted = attention_mask[:, 1:].bool()
    rows, targets = logits[:, :-1][predicted], input_ids[:, 1:][predicted]
    # By parts, because an fp32 copy of all logits of a large vocabulary fills a GPU by itself.
    nll = [
        functional.cross_entropy(part.float(), target, reduction="none")
        for part, target in zip(rows.split(ROWS), targets.split(ROWS), strict=True)
    ]
    return torch.cat(nll), predicted.nonzero()[:, 0]


class TokenLoss(nn.Module):
    """``forward`` gives the *sum* of the NLL over the predicted tokens of a micro-batch.

    Dividing by the number of predicted tokens of the whole step is left to the caller: only so is
    the gradient the same whatever the micro-batch size or the number of devices.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        logits = self.model(input_ids=input_ids, attention_mask=attention_mask).logits
        return token_nll(logits, input_ids, attention_mask)[0].sum()
