"""Attention over texts that lie one after another in one row, each of which sees itself alone.

``attend`` is registered with transformers; it gets the borders of texts as the keyword argument
``documents`` of the model. On CUDA in half precision, a kernel for variable lengths does it.
Anywhere else, and where scores are capped (Gemma 2), texts of similar length are padded to the
longest of them. Both are exact, since attention is causal.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import Any, NamedTuple

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
UNKNOWN = (
    f"only models of the types {', '.join(sorted(MODELS))} are known to keep texts in one row apart"
)
GROUPS = 4  # at most: each costs calls of its own in every block
CALLS = {"cpu": 2e5, "cuda": 2e9}
"""What the calls of one more group cost, in products of a query's and a key's element."""
SHORT = 256
"""Longest texts whose gradients the CPU is faster to compute in fp32 than in half precision."""


class _Layout(NamedTuple):
    """Texts in groups, each padded to its longest: texts and length of each group, the token of the
    row that stands at each place (any of its text for padding), and the place of each token."""

    shapes: list[tuple[int, int]]
    source: Tensor
    back: Tensor


class Documents:
    """Where texts begin and end in one row of tokens: their lengths (texts,), in tokens; and their
    ids, where they are known."""

    def __init__(self, lengths: NDArray[np.int64], ids: Iterable[str] = ()) -> None:
        self.lengths = lengths[lengths > 0]
        self.ids = [name for name, length in zip(ids, lengths, strict=False) if length]
        self.longest = int(self.lengths.max(initial=0))
        self._offsets: Tensor | None = None
        self._layout: _Layout | None = None
        self._masks: dict[tuple[int, int | None], Tensor] = {}

    def offsets(self, device: torch.device) -> Tensor:
        """Return where each text begins, and the last one ends: int32 (texts + 1)."""
        if self._offsets is None:
            ends = np.cumsum(self.lengths, dtype=np.int32)
            self._offsets = to_device(np.concatenate([np.zeros(1, np.int32), ends]), device)
        return self._offsets

    def layout(self, width: int, device: torch.device) -> _Layout | None:
        """Return the groups for queries of ``width`` elements; None for texts of one length."""
        if (self.lengths == self.longest).all():
            return None
        if self._layout is None:
            calls = CALLS["cpu" if device.type == "cpu" else "cuda"]
            self._layout = _grouped(self.lengths, calls / width, device)
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


def _grouped(lengths: NDArray[np.int64], calls: float, device: torch.device) -> _Layout:
    order = np.argsort(-lengths, kind="stable")
    starts = np.cumsum(lengths) - lengths
    shapes, sources = [], []
    back = np.empty(int(lengths.sum()), dtype=np.int64)
    place = 0
    for first, last in _cuts(lengths[order], calls):
        texts = order[first:last]
        longest = int(lengths[texts[0]])
        step = np.arange(longest)
        positions = np.minimum(step[None, :], lengths[texts, None] - 1) + starts[texts, None]
        real = step[None, :] < lengths[texts, None]
        places = np.arange(place, place + positions.size).reshape(positions.shape)
        back[positions[real]] = places[real]
        shapes.append((len(texts), longest))
        sources.append(positions.ravel())
        place += positions.size
    both = to_device(np.concatenate([*sources, back]), device)
    source, back_there = both.split([place, len(back)])
    return _Layout(shapes, source, back_there)


def _cuts(lengths: NDArray[np.int64], calls: float) -> list[tuple[int, int]]:
    """Return groups of texts, given longest first, as ranges: those that cost least in all, where
    a group costs ``calls``, and for each of its texts the square of its longest."""
    firsts = np.flatnonzero(np.concatenate([[True], lengths[1:] != lengths[:-1]]))
    bounds = np.append(firsts, len(lengths))
    squares = lengths[firsts].astype(np.float64) ** 2
    # cost[i, j]: of the texts from the i-th distinct length up to and without the j-th.
    cost = (bounds[None, :] - bounds[:-1, None]) * squares[:, None] + calls
    cost = np.where(np.arange(len(bounds))[None, :] > np.arange(len(firsts))[:, None], cost, np.inf)
    best, cuts = cost[0], [np.zeros(len(bounds), dtype=np.int64)]
    totals = [best[-1]]
    for _ in range(min(GROUPS, len(firsts)) - 1):
        options = best[:-1, None] + cost
        cuts.append(options.argmin(axis=0))
        best = options.min(axis=0)
        totals.append(best[-1])
    ranges, end = [], len(bounds) - 1
    for level in range(int(np.argmin(totals)), -1, -1):
        begin = int(cuts[level][end])
        ranges.append((int(bounds[begin]), int(bounds[end])))
        end = begin
    return ranges[::-1]


def can_share(model: PreTrainedModel) -> bool:
    """Return whether texts can share a row of this model's; say so once where they cannot."""
    config = model.config
    library = type(model).__module__.startswith("transformers.models.")
    ahead = getattr(config, "use_bidirectional_attention", False)
    causal = getattr(config, "is_causal", True) and not ahead
    drops = getattr(config, "attention_dropout", 0.0)
    if rotary.changing(model):
        return _supports(str(config.model_type), False, "its positions depend on a text's length")
    return _supports(str(config.model_type), bool(library and causal and not drops), UNKNOWN)


@cache
def _supports(kind: str, is_known: bool, otherwise: str) -> bool:
    if kind in MODELS and is_known:
        return True
    print(
        f"{kind}: texts are padded to the longest of a batch, since {otherwise}",
        file=sys.stderr,
        flush=True,
    )
    return False


@contextmanager
def sharing_rows(model: PreTrainedModel) -> Iterator[None]:
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
    window = sliding_window
    if window is not None and window >= documents.longest:
        window = None
    half, kernel = _half(query), _kernel(query.device)
    if half is None or kernel is None or softcap is not None:
        return _padded(q, k, v, documents, scaling, window, softcap)[None], None
    offsets = documents.offsets(q.device)
    out = kernel(
        *(q.to(half), k.to(half), v.to(half), offsets, offsets),
        *(documents.longest, documents.longest),
        scale=scaling,
        # Keys to the left beside the query's own place, and none to the right.
        window_size=(-1 if window is None else window - 1, 0),
        enable_gqa=q.shape[1] != k.shape[1],
    )
    return out[None], None


def _half(query: Tensor) -> torch.dtype | None:
    """Return the dtype in which a kernel for variable lengths would compute, where it can."""
    if not query.is_cuda or query.shape[-1] > 256:
        return None
    dtype = torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else query.dtype
    return dtype if dtype in (torch.bfloat16, torch.float16) else None


@cache
def _kernel(device: torch.device) -> Callable[..., Any] | None:
    """Return flash attention for variable lengths; None where the GPU is too old."""
    if device.type != "cuda" or torch.cuda.get_device_capability(device) < (8, 0):
        return None
    # Not before it is needed: the module looks for CUDA.
    from torch.nn.attention.varlen import varlen_attn

    return varlen_attn


def _padded(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    documents: Documents,
    scaling: float,
    window: int | None,
    softcap: float | None,
) -> Tensor:
    """Attend in groups of texts of similar length: all are (tokens, heads, size)."""
    layout = documents.layout(q.shape[1] * q.shape[2], q.device)
    shapes = [(len(documents.lengths), documents.longest)] if layout is None else layout.shapes
    if layout is not None:
        q, k, v = (_Spread.apply(x, layout.source, layout.back) for x in (q, k, v))
    sizes = [texts * length for texts, length in shapes]
    names = []
    for shape, *group in zip(shapes, q.split(sizes), k.split(sizes), v.split(sizes), strict=True):
        query, key, value = (x.unflatten(0, shape).transpose(1, 2) for x in group)
        local_window = window if window is not None and window < shape[1] else None
        if softcap is not None:
            mask = documents.mask(shape[1], local_window, q.device)
            out = _capped(query, key, value, mask, scaling, softcap)
        else:
            exact = q.device.type == "cpu" and q.requires_grad and shape[1] <= SHORT
            dtype = torch.promote_types(q.dtype, torch.float32) if exact else q.dtype
            with torch.autocast("cpu", enabled=False) if exact else nullcontext():
                out = functional.scaled_dot_product_attention(
                    query.to(dtype),
                    key.to(dtype),
                    value.to(dtype),
                    attn_mask=None
                    if local_window is None
                    else documents.mask(shape[1], local_window, q.device),
                    is_causal=local_window is None,
                    scale=scaling,
                    enable_gqa=query.shape[1] != key.shape[1],
                ).to(query.dtype)
        names.append(out.transpose(1, 2).flatten(0, 1))
    out = names[0] if len(names) == 1 else torch.cat(names)
    return out if layout is None else _Gather.apply(out, layout.back)


def _capped(
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


class _Spread(torch.autograd.Function):
    """Move rows (tokens, ...) to their places, with copies of a row of the same text as padding.
    Rows taken by index are the same in each run; adding by index is not, on a GPU."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, source: Tensor, back: Tensor) -> Tensor:
        ctx.save_for_backward(back)
        return values.index_select(0, source)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (back,) = ctx.saved_tensors
        return gradient.index_select(0, back), None, None


class _Gather(torch.autograd.Function):
    """Move rows (places, ...) back to their order in the row of tokens, without the padding."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, back: Tensor) -> Tensor:
        ctx.save_for_backward(back)
        ctx.places = len(values)
        return values.index_select(0, back)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (back,) = ctx.saved_tensors
        spread = gradient.new_zeros(ctx.places, *gradient.shape[1:])
        return spread.index_copy_(0, back, gradient), None


AttentionInterface.register(NAME, attend)
