"""Which examples make up a step, and how texts of different lengths share a batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from numpy.typing import NDArray
from transformers import PreTrainedModel

from mamushi.lm.attention import Documents, can_share, to_device
from mamushi.lm.tokens import TokenSet
from mamushi.running.progress import Progress

CACHED = 2**20
"""Numbers of a batch's states that stay in the caches of a CPU: of SmolLM2-135M, 13% less time than
with batches of 16,384 tokens."""


def steps(examples: float, batch_size: int, epochs: float) -> int:
    """Return the paper's number of optimizer steps, T = floor(epochs * n / batch), at least 1, of n
    ``examples``, which need not be whole: see ``tokens.mass``."""
    return max(1, int(epochs * examples // batch_size))


def examples_of_step(
    step: int,
    examples: int,
    batch_size: int,
    seed: int,
    remaining: NDArray[np.bool_] | None = None,
) -> NDArray[np.int64]:
    """Return indices (batch_size,) of the examples in optimizer step ``step``, counted from 0, of
    an endless stream, one freshly shuffled pass after another. ``remaining`` (all texts,) says
    which of all texts the examples are, where some are left out: trainings of one seed read the
    texts that they share in the same order."""
    remaining = np.ones(examples, dtype=bool) if remaining is None else remaining
    rows = np.cumsum(remaining) - 1
    first, last = step * batch_size, (step + 1) * batch_size
    passes = []
    for epoch in range(first // examples, (last - 1) // examples + 1):
        order = np.random.default_rng([seed, epoch]).permutation(len(remaining))
        passes.append(rows[order[remaining[order]]])
    start = first % examples
    return np.concatenate(passes)[start : start + batch_size].astype(np.int64)


def remaining_of_step(
    step: int, batch_size: int, seed: int, remaining: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Return indices, at most (batch_size,), of the examples in step ``step`` of a training on all
    texts that are ``remaining`` (all texts,): the others leave gaps, and a step may have no
    example."""
    rows = examples_of_step(step, len(remaining), batch_size, seed)
    return (np.cumsum(remaining, dtype=np.int64) - 1)[rows[remaining[rows]]]


def batches(
    lengths: NDArray[np.int64], batch_tokens: int, *, shared: bool
) -> Iterator[NDArray[np.int64]]:
    """Give indices in batches of one text or of at most ``batch_tokens`` tokens, where texts are
    not ``shared`` in a row with their padding; longest text first, so that a batch that does not
    fit in memory fails at once."""
    order = np.argsort(-lengths, kind="stable")
    ends = np.cumsum(lengths[order])
    start = 0
    while start < len(order):
        if shared:
            before = int(ends[start - 1]) if start else 0
            stop = int(np.searchsorted(ends, before + batch_tokens, side="right"))
        else:
            stop = start + batch_tokens // max(1, int(lengths[order[start]]))
        stop = max(stop, start + 1)
        yield order[start:stop]
        start = stop


def model_batches(
    model: PreTrainedModel,
    texts: TokenSet,
    batch_tokens: int,
    accelerator: Accelerator,
    purpose: str,
) -> Iterator[tuple[NDArray[np.int64], Batch, bool]]:
    """Put the model in eval mode; give the rows of ``texts`` that share a forward pass, their
    batch, and whether the pass counts: processes take turns, and all make as many passes of a
    sharded model, so that who has less to do repeats the first."""
    model.eval()
    shared = can_share(model)
    if accelerator.device.type == "cpu":
        text_config = model.config.get_text_config(decoder=True)
        batch_tokens = min(batch_tokens, CACHED // text_config.hidden_size)
    all_rows = list(batches(texts.lengths, batch_tokens, shared=shared))
    with Progress(len(texts), purpose, "text") as progress:
        for first in range(0, len(all_rows), accelerator.num_processes):
            place = first + accelerator.process_index
            counts = place < len(all_rows)
            rows = all_rows[place if counts else 0]
            yield rows, batch_of(texts, rows, accelerator.device, shared=shared), counts
            progress.advance(len(rows))


def batch_of(
    texts: TokenSet, rows: NDArray[np.int64], device: torch.device, *, shared: bool
) -> Batch:
    """Make one batch of the texts at ``rows``, with their weights, as ``collate``."""
    weights, sequences = [texts.weights_of(row) for row in rows], [texts[row] for row in rows]
    return collate(sequences, device, shared=shared, ids=texts.ids[rows], weights=weights)


@dataclass(frozen=True)
class Batch:
    """Texts as a model reads them, one after another in one row or each in a row padded on the
    right, and what is to be predicted. A *place* is an index into all tokens, row after row."""

    ids: torch.Tensor
    """Token ids, int64: (1, tokens) or (texts, longest)."""
    lengths: NDArray[np.int64]
    """Tokens of each text, on the host (texts,)."""
    predicting: torch.Tensor
    """The places from which a token is predicted: all of a text but its last; int64 (predicted,)"""
    targets: torch.Tensor
    """The tokens to be predicted from there, int64 (predicted,)."""
    texts: torch.Tensor
    """The text, counted from 0, that each of them is in, int64 (predicted,)."""
    weights: torch.Tensor | None = None
    """How much each of them counts, float32 (predicted,); None: all 1."""
    positions: torch.Tensor | None = None
    """Of texts in one row: of each token in its text, int64 (1, tokens)."""
    documents: Documents | None = None
    """Of texts in one row: where they begin and end."""
    mask: torch.Tensor | None = None
    """Of padded texts: 1 for tokens and 0 for padding, int64 (texts, longest)."""
    real: torch.Tensor | None = None
    """Of padded texts: the places of their tokens, int64 (tokens,)."""

    def sums(self, nll: torch.Tensor) -> torch.Tensor:
        """Sum ``nll`` (predicted,) over each text, (texts,)."""
        total = torch.zeros(len(self.lengths), dtype=nll.dtype, device=nll.device)
        return total.index_add(0, self.texts, nll)

    def flat(self, values: torch.Tensor) -> torch.Tensor:
        """Return the ``values`` (rows, length, ...) of tokens, text after text (tokens, ...)."""
        places = values.flatten(0, 1)
        return places if self.real is None else places[self.real]


def collate(
    texts: Sequence[NDArray[np.int32]],
    device: torch.device,
    *,
    shared: bool,
    ids: Iterable[str] = (),
    labels: Sequence[NDArray[np.int32]] | None = None,
    weights: Sequence[NDArray[np.float32]] | None = None,
) -> Batch:
    """Make one batch of the texts: in one row where ``shared``, else padded. The room `speed` looks
    at ``ids``. ``labels`` are predicted in the place of the texts' own tokens; a token of
    ``weights`` 0 is read and not predicted. Nothing here waits for the device."""
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    tokens = int(lengths.sum())
    # Without a token there is no row: padding at least is something to run a model on.
    shared = shared and tokens > 0
    ends = np.cumsum(lengths)
    place = np.arange(tokens) - np.repeat(ends - lengths, lengths)
    row = np.repeat(np.arange(len(texts)), lengths)
    flat = _joined(texts, np.int64)
    last = np.zeros(tokens, dtype=bool)
    last[ends[lengths > 0] - 1] = True
    earlier = np.flatnonzero(~last)
    counted = None
    if weights is not None:
        weighed = _joined(weights, np.float32)
        earlier = earlier[weighed[earlier + 1] > 0]
        # A loss whose tokens all count alike is cheaper: see ``batch_nll``.
        if not (weighed[earlier + 1] == 1).all():
            counted = to_device(weighed[earlier + 1], device)
    targets = (flat if labels is None else _joined(labels, np.int64))[earlier + 1]
    shape = (len(texts), max(1, int(lengths.max(initial=0))))
    arrays = [flat, place, earlier, targets, row[earlier]]
    if not shared:
        padded = np.zeros((2, *shape), dtype=np.int64)
        padded[0, row, place], padded[1, row, place] = flat, 1
        places = row * shape[1] + place
        arrays = [padded[0].ravel(), padded[1].ravel(), places[earlier], *arrays[3:], places]
    # One transfer for all.
    on_device = to_device(np.concatenate(arrays), device).split([len(array) for array in arrays])
    common = (lengths, on_device[2], on_device[3], on_device[4], counted)
    if shared:
        return Batch(on_device[0][None], *common, on_device[1][None], Documents(lengths, ids))
    padded_ids, mask = (tensor.view(shape) for tensor in on_device[:2])
    return Batch(padded_ids, *common, mask=mask, real=on_device[5])


def _joined(arrays: Sequence[NDArray[Any]], dtype: type) -> NDArray[Any]:
    return np.concatenate([np.empty(0, dtype), *arrays]).astype(dtype)
