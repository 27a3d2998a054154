"""Attention over texts that lie one after another in one row, each of which sees itself alone.

``attend`` is registered with transformers; it gets the borders of texts as the keyword argument
``documents`` of the model. On CUDA in half precision, a kernel for variable lengths does it.
Anywhere else, and where scores are capped (Gemma 2), texts of similar length are padded to the
longest of them. Both are exact, since attention is causal.
"""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from operator import itemgetter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional
from transformers import AttentionInterface, PreTrainedModel

from mamushi.lm import rotary

NAME = "documents"  # of this attention, as a model's configuration has it
MODELS = frozenset({"gemma", "gemma2", "llama", "mistral", "qwen2", "qwen3"})
"""Types of models of the transformers library that are known, by test, to hand ``documents`` on and
to mix tokens by attention alone; others may have convolutions or recurrences besides."""
GROUPS = 4  # at most: each costs calls of its own in every block
CALLS = {"cpu": 2e5, "cuda": 2e9}
"""What the calls of one more group cost, in products of a query's and a key's element."""
SHORT = 256
"""Longest texts whose gradients the CPU is faster to compute in fp32 than in half precision."""


Layout = tuple[list[tuple[int, int]], tuple[Tensor, ...] | None]
"""Texts and length of each group, and where lengths differ how tokens move there: the token at each
place (any of its text for padding), the place of each token, and the places of padding."""


class Documents:
    """Where texts begin and end in one row of tokens: their lengths (texts,), in tokens; and their
    ids, where they are known."""

    def __init__(self, lengths: NDArray[np.int64], ids: Iterable[str] = ()) -> None:
        self.lengths = lengths[lengths > 0]
        self.ids = [name for name, length in zip(ids, lengths, strict=False) if length]
        self.longest = int(self.lengths.max(initial=0))
        self._offsets: Tensor | None = None
        self._layout: Layout | None = None
        self._masks: dict[tuple[int, int | None], Tensor] = {}

    def offsets(self, device: torch.device) -> Tensor:
        """Return where each text begins, and the last one ends: int32 (texts + 1)."""
        if self._offsets is None:
            self._offsets = to_device(np.cumsum([0, *self.lengths], dtype=np.int32), device)
        return self._offsets

    def layout(self, width: int, device: torch.device) -> Layout:
        """Return groups of texts of similar length, for queries of ``width`` elements."""
        if self._layout is None:
            calls = CALLS["cpu" if device.type == "cpu" else "cuda"] / width
            starts, total = np.cumsum(self.lengths) - self.lengths, int(self.lengths.sum())
            shapes, sources, real = [], [], []
            for texts in _cheapest_groups(self.lengths, calls):
                lengths, first = self.lengths[texts, None], starts[texts, None]
                step = np.arange(lengths.max())[None]
                shapes.append((len(texts), step.size))
                sources.append((first + np.minimum(step, lengths - 1)).ravel())
                real.append((step < lengths).ravel())
            source = np.concatenate(sources)
            # The places of tokens in their order, and those of padding behind them.
            places = np.argsort(np.where(np.concatenate(real), source, total), kind="stable")
            sizes = [len(source), total, len(source) - total]
            both = np.concatenate([source, places])
            is_even = (self.lengths == self.longest).all()
            moves = None if is_even else to_device(both, device).split(sizes)
            self._layout = shapes, moves
        return self._layout

    def mask(self, length: int, window: int | None, device: torch.device) -> Tensor:
        """Return which keys a query sees: those before it and itself, and of these the last
        ``window``; bool (length, length)."""
        if (length, window) not in self._masks:
            mask = torch.ones(length, length, dtype=torch.bool, device=device).tril()
            self._masks[length, window] = mask if window is None else mask.triu(1 - window)
        return self._masks[length, window]


def to_device(values: NDArray[Any], device: torch.device) -> Tensor:
    """Copy the values to the device, without waiting for it."""
    tensor = torch.from_numpy(values)
    if device.type != "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def _cheapest_groups(lengths: NDArray[np.int64], calls: float) -> list[NDArray[np.int64]]:
    """Return the texts in groups, longest first: those that cost least in all, where a group costs
    ``calls``, and for each of its texts the square of its longest."""
    order = np.argsort(-lengths, kind="stable")
    # Where a new length begins, and the end.
    bounds = np.flatnonzero(np.diff(lengths[order], prepend=0, append=0))
    squares = lengths[order][bounds[:-1], None].astype(np.float64) ** 2
    # cost[i, j]: of the texts from the i-th distinct length up to and without the j-th.
    cost = (bounds[None] - bounds[:-1, None]) * squares + calls
    cost[np.tri(*cost.shape, dtype=np.bool_)] = np.inf
    # Of the best groups up to each bound, the total and the bounds at which they begin.
    best, begins = cost[0], np.zeros((1, len(bounds)), dtype=np.int64)
    choices = [(best[-1], begins[:, -1])]
    for _ in range(min(GROUPS, len(cost)) - 1):
        options = best[:-1, None] + cost
        last = options.argmin(axis=0)
        best, begins = options.min(axis=0), np.vstack([begins[:, last], last])
        choices.append((best[-1], begins[:, -1]))
    return np.split(order, bounds[min(choices, key=itemgetter(0))[1]][1:])


def can_share(model: PreTrainedModel) -> bool:
    """Return whether texts can share a row of this model's; say so once where they cannot."""
    config = model.config
    is_known = bool(
        config.model_type in MODELS
        and type(model).__module__.startswith("transformers.models.")
        and getattr(config, "is_causal", True)
        and not getattr(config, "use_bidirectional_attention", False)
        and not getattr(config, "attention_dropout", 0.0)
        and not rotary.varying_rotaries(model)
    )
    if not is_known:
        _warn_padded(str(config.model_type))
    return is_known


@cache
def _warn_padded(kind: str) -> None:
    problem = "not known to keep texts in one row apart, so each is padded to a batch's longest"
    print(f"{kind}: {problem}", file=sys.stderr, flush=True)


@contextmanager
def share_rows(model: PreTrainedModel) -> Iterator[None]:
    """Within the block, the model's forward passes take ``documents`` and keep them apart."""
    config = model.config
    configured = config._attn_implementation
    config._attn_implementation = NAME
    try:
        yield
    finally:
        config._attn_implementation = configured


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    documents: Documents,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """Attend causally within each of the ``documents``, as transformers calls it.

    ``query`` (1, heads, tokens, size), ``key`` and ``value`` (1, key heads, tokens, size), where
    the number of heads is a multiple of that of key heads. A query sees at most the last
    ``sliding_window`` keys. Returns (1, tokens, heads, size), and no weights.
    """
    if scaling is None:
        scaling = query.shape[-1] ** -0.5
    q, k, v = (x[0].transpose(0, 1) for x in (query, key, value))
    half, window = _flash_dtype(query), sliding_window
    if half is None or softcap is not None:
        return _attend_padded(q, k, v, documents, scaling, window, softcap)[None], None
    # Not before it is needed: the module looks for CUDA.
    from torch.nn.attention.varlen import varlen_attn

    offsets, longest = documents.offsets(q.device), documents.longest
    out: Any = varlen_attn(
        *(q.to(half), k.to(half), v.to(half), offsets, offsets, longest, longest),
        scale=scaling,
        # Keys to the left beside the query's own place, and none to the right.
        window_size=(-1 if window is None or window >= longest else window - 1, 0),
        enable_gqa=q.shape[1] != k.shape[1],
    )
    return out[None], None


def _flash_dtype(query: Tensor) -> torch.dtype | None:
    """Return the dtype in which flash attention for variable lengths would compute; None where it
    cannot, or the GPU is too old."""
    if not query.is_cuda or query.shape[-1] > 256:
        return None
    if torch.cuda.get_device_capability(query.device) < (8, 0):
        return None
    dtype = torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else query.dtype
    return dtype if dtype in (torch.bfloat16, torch.float16) else None


def _attend_padded(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    documents: Documents,
    scaling: float,
    window: int | None,
    softcap: float | None,
) -> Tensor:
    """Attend in groups of texts of similar length: all are (tokens, heads, size)."""
    shapes, moves = documents.layout(q.shape[1] * q.shape[2], q.device)
    if moves is not None:
        source, back, padding = moves
        q, k, v = (_Move.apply(x, source, back, None) for x in (q, k, v))
    sizes = [texts * length for texts, length in shapes]
    outputs = []
    for shape, *group in zip(shapes, q.split(sizes), k.split(sizes), v.split(sizes), strict=True):
        query, key, value = (x.unflatten(0, shape).transpose(1, 2) for x in group)
        length = shape[1]
        near = window if window is not None and window < length else None
        mask = None
        if near is not None or softcap is not None:
            mask = documents.mask(length, near, q.device)
        if mask is not None and softcap is not None:
            out = _attend_capped(query, key, value, mask, scaling, softcap)
        else:
            exact = q.device.type == "cpu" and q.requires_grad and length <= SHORT
            dtype = torch.promote_types(q.dtype, torch.float32) if exact else q.dtype
            with torch.autocast("cpu", enabled=False) if exact else nullcontext():
                out = functional.scaled_dot_product_attention(
                    *(query.to(dtype), key.to(dtype), value.to(dtype), mask),
                    is_causal=mask is None,
                    scale=scaling,
                    enable_gqa=query.shape[1] != key.shape[1],
                ).to(query.dtype)
        outputs.append(out.transpose(1, 2).flatten(0, 1))
    out = outputs[0] if len(outputs) == 1 else torch.cat(outputs)
    return out if moves is None else _Move.apply(out, back, source, padding)


def _attend_capped(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor, scaling: float, softcap: float
) -> Tensor:
    """Attend with ``softcap * tanh(s / softcap)`` for scores s; (texts, heads, length, size)."""
    groups = q.shape[1] // k.shape[1]
    # Queries that share a key head are more rows of one product, so that no key is copied.
    rows = q.unflatten(1, (k.shape[1], groups)).flatten(2, 3)
    scores = torch.matmul(rows, k.transpose(2, 3)) * scaling
    scores = torch.tanh(scores / softcap) * softcap
    scores = scores.unflatten(2, (groups, -1)).masked_fill(~mask, -torch.inf)
    exact = torch.promote_types(scores.dtype, torch.float32)
    weights = torch.softmax(scores, dim=-1, dtype=exact).to(q.dtype)
    return torch.matmul(weights.flatten(2, 3), v).unflatten(2, (groups, -1)).flatten(1, 2)


class _Move(torch.autograd.Function):
    """Take rows (n, ...) by ``index``, and gradients by ``reverse``, those of ``padding`` being 0.
    Rows taken by index are the same in each run; adding by index is not, on a GPU."""

    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, index: Tensor, reverse: Tensor, padding: Tensor | None
    ) -> Tensor:
        ctx.save_for_backward(reverse, padding)
        return rows.index_select(0, index)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        reverse, padding = ctx.saved_tensors
        moved = gradient.index_select(0, reverse)
        return moved if padding is None else moved.index_fill_(0, padding, 0), None, None, None


AttentionInterface.register(NAME, attend)
