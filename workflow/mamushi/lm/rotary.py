"""Rotary positions whose frequencies depend on how long the input is: each text gets its own.

Models for long contexts (dynamic NTK scaling; longrope, of Phi-3) turn queries and keys by other
angles once an input is longer than those of their first pretraining. transformers reads that length
off the whole batch, and keeps what dynamic scaling last used for the next one. Here it is read off
each text, so that neither a neighbour nor an earlier batch changes a result.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import PreTrainedModel

STEADY = frozenset({"default", "linear", "llama3", "proportional", "yarn"})
"""Kinds of scaling that are the same for inputs of any length. Any other is taken to depend on it,
which is exact for one that does not as well, and only slower."""

_rotary_modules: WeakKeyDictionary[nn.Module, list[nn.Module]] = WeakKeyDictionary()


def varying_rotaries(model: PreTrainedModel) -> list[nn.Module]:
    """Return the modules of a model that compute rotary positions by the length of the input."""
    if model not in _rotary_modules:
        _rotary_modules[model] = [m for m in model.modules() if not _ignores_length(m)]
    return _rotary_modules[model]


def _ignores_length(module: nn.Module) -> bool:
    kinds = getattr(module, "rope_type", None)
    names = kinds.values() if isinstance(kinds, dict) else [kinds]
    return STEADY.issuperset(name for name in names if isinstance(name, str))


@contextmanager
def by_text(model: PreTrainedModel, lengths: NDArray[np.int64] | None = None) -> Iterator[None]:
    """Within the block, passes of the model see each row of padded texts as long as ``lengths``
    (texts,) has it, in tokens; without, all rows as long as they are. None keeps frequencies of an
    earlier pass, nor leaves any."""
    modules = varying_rotaries(model)
    for module in modules:
        module.forward = partial(_forward, module, module.forward, lengths)
    try:
        yield
    finally:
        for module in modules:
            # What is left is the method of its class.
            del module.forward
            _reset_frequencies(module)


def _forward(
    module: nn.Module,
    plain: Callable[..., Any],
    lengths: NDArray[np.int64] | None,
    x: Tensor,
    position_ids: Tensor,
    *args: Any,
    **options: Any,
) -> Any:
    """Compute cosines and sines (texts, tokens, size) of ``position_ids``, (texts or 1, tokens)."""

    def computed(positions: Tensor) -> Any:
        _reset_frequencies(module)
        return plain(x, positions, *args, **options)

    if lengths is None:
        return computed(position_ids)
    merged: list[Tensor] = []
    for length in np.unique(lengths):
        rows = torch.from_numpy(np.flatnonzero(lengths == length)).to(x.device)
        # Padding, whose values nobody reads, must not make a text longer than it is.
        clamped = position_ids.clamp(max=max(1, int(length)) - 1)
        result = computed(clamped if len(clamped) == 1 else clamped[rows])
        # Llama 4 has one complex tensor in the place of cosines and sines.
        results = [result] if isinstance(result, Tensor) else result
        merged = merged or [value.new_empty(len(lengths), *value.shape[1:]) for value in results]
        for values, value in zip(merged, results, strict=True):
            values[rows] = value
    return merged[0] if len(merged) == 1 else tuple(merged)


def _reset_frequencies(module: Any) -> None:
    """Put back the frequencies with which the module was made."""
    # Of some versions of transformers they are buffers, of others plain attributes.
    for name, original in [*module.named_buffers(recurse=False), *vars(module).items()]:
        if name.endswith("original_inv_freq"):
            prefix = name.removesuffix("original_inv_freq")
            device = getattr(module, f"{prefix}inv_freq").device
            # A copy: transformers writes into the buffer.
            fresh = original.to(device, copy=True)
            module.register_buffer(f"{prefix}inv_freq", fresh, persistent=False)
            if hasattr(module, f"{prefix}max_seq_len_cached"):
                setattr(module, f"{prefix}max_seq_len_cached", module.original_max_seq_len)
