"""The quantities that the loss of an unlearner depends on, and the forward pass that gives them."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from transformers import PreTrainedModel

from mamushi.errors import UserError
from mamushi.lm.batches import Batch
from mamushi.lm.loss import batch_nll
from mamushi.lm.tokens import TokenSet


@dataclass(frozen=True)
class Nll:
    """What a loss sees of one domain's texts, those with a token to predict, in a micro-batch,
    which may have none; NLLs are in nats. A step without any has ``step_tokens`` 0."""

    sums: torch.Tensor
    """NLL summed over the predicted tokens of each text, fp32 with gradients (texts,). Where the
    unlearner asks for random labels, those of the forget texts are the NLLs of these labels. Where
    tokens are unlearned and not texts, these alone are predicted in the forget texts."""
    tokens: torch.Tensor
    """Predicted tokens of each text, fp32 (texts,)."""
    step_tokens: int
    """Predicted tokens of this domain in the whole step, of all processes."""
    step_texts: int
    """Texts of this domain in the whole step."""
    start_sums: torch.Tensor | None = None
    """``sums`` under the start model, fp32 (texts,): of forget texts, for an unlearner with
    ``START_NLL``."""

    def mean(self) -> torch.Tensor:
        """Return ``sums.sum() / step_tokens``, which adds up over a step to L, the mean NLL per
        predicted token."""
        return self.sums.sum() / max(self.step_tokens, 1)

    def text_mean(self, values: torch.Tensor) -> torch.Tensor:
        """Return ``values.sum() / step_texts``, which adds up over a step to the mean of the
        ``values`` (texts,)."""
        return values.sum() / max(self.step_texts, 1)


class TextLoss(nn.Module):
    """``forward`` gives sums (texts,), at least in fp32, of ``-log p(labels_t | tokens_<t)`` over
    each text of a batch, whose labels are its tokens, or others in their places."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: Batch) -> torch.Tensor:
        return batch.sums(batch_nll(self.model, batch))


def require_predicted(forget: TokenSet, retain: TokenSet) -> None:
    """Raise ``UserError`` unless there is a token to predict in texts of both domains."""
    for texts, domain in ((forget, "forget"), (retain, "retain")):
        if not (texts.counted > 0).any():
            raise UserError(f"unlearning: no {domain} text with a token to predict")


def random_labels(
    tokens: NDArray[np.int32],
    vocabulary: NDArray[np.int64],
    special: Collection[int],
    seed: list[int],
) -> NDArray[np.int32]:
    """Draw a label for each token of a text (length,) by the seed, uniform over the ids
    ``vocabulary`` (ascending) without that token; of a ``special`` token, that token itself."""
    drawn = np.random.default_rng(seed).integers(0, len(vocabulary) - 1, size=len(tokens))
    # Skipping over the true token leaves the others equally likely.
    drawn += drawn >= np.searchsorted(vocabulary, tokens)
    is_special = np.isin(tokens, np.array(sorted(special), dtype=np.int64))
    return np.where(is_special, tokens, vocabulary[drawn]).astype(np.int32)
