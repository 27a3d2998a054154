"""Which examples make up a step, and how texts of different lengths share a batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray


def steps(examples: int, batch_size: int, epochs: float) -> int:
    """Number of optimizer steps, at least 1: T = floor(epochs * n / batch), the paper's formula."""
    return max(1, int(epochs * examples // batch_size))


def examples_of_step(step: int, examples: int, batch_size: int, seed: int) -> NDArray[np.int64]:
    """Indices (batch_size,) of the examples in optimizer step ``step``, counted from 0.

    The steps cut an endless stream, one freshly shuffled pass over the examples after another, into
    batches; a batch may span two passes, as T = floor(epochs * n / batch) implies. Any step can be
    asked for without replaying those before it, which is what makes a resumed run exact.
    """
    first, last = step * batch_size, (step + 1) * batch_size
    passes = [
        np.random.default_rng([seed, epoch]).permutation(examples)
        for epoch in range(first // examples, (last - 1) // examples + 1)
    ]
    start = first - first // examples * examples
    return np.concatenate(passes)[start : start + batch_size].astype(np.int64)


def by_length(lengths: NDArray[np.int64], batch_tokens: int) -> Iterator[NDArray[np.int64]]:
    """Indices in batches of similar length, each of at most ``batch_tokens`` tokens with padding.

    Longest first, so that a batch that does not fit in memory fails at once. A text that is longer
    than ``batch_tokens`` gets a batch of its own.
    """
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        longest = max(1, int(lengths[order[start]]))
        stop = start + max(1, batch_tokens // longest)
        yield order[start:stop]
        start = stop


def pad(
    texts: Sequence[NDArray[np.int32]], device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    """Right-pad token ids to the longest text.

    Returns ``input_ids`` and ``attention_mask``, both (texts, longest) int64; padding has id 0 and
    mask 0, so that it is never looked at, whatever token the model's vocabulary has at 0.
    """
    lengths = torch.tensor([len(text) for text in texts])
    longest = max(1, int(lengths.max()))
    ids = np.zeros((len(texts), longest), dtype=np.int64)
    for row, text in zip(ids, texts, strict=True):
        row[: len(text)] = text
    mask = (torch.arange(longest)[None, :] < lengths[:, None]).long()
    return torch.from_numpy(ids).to(device), mask.to(device)
