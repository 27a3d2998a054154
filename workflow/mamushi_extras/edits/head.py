"""An edit of a model's logits, as a module around its output head: what needs no gradient of it.

Logits z of a hidden state h become  z / T + strength * e(h), with e a constant for each token, or
the log-probability that a classifier gives to *retain* for each token that could come next.
"""

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel

from mamushi.lm.head import EditedHead, logits_of, soft_cap

PREFIX = "edit."
"""How the names of an edit's tensors begin in a file of their own."""


class HeadEdit(nn.Module):
    """What is done to logits: divided by ``temperature``, and ``strength`` times the ``logit_term``
    added. Its tensors are fp32: ``bias`` (V,), or ``A`` (rank, width), ``B`` (V, rank) and ``c``
    (V,), or none for a model that stays as it is."""

    strength: Tensor
    temperature: Tensor
    bias: Tensor | None
    A: Tensor | None
    B: Tensor | None
    c: Tensor | None

    def __init__(
        self, tensors: Mapping[str, Tensor], strength: float = 0.0, temperature: float = 1.0
    ) -> None:
        super().__init__()
        self.register_buffer("strength", torch.tensor(strength))
        self.register_buffer("temperature", torch.tensor(temperature))
        for name in ("bias", "A", "B", "c"):
            self.register_buffer(name, tensors.get(name))

    def logit_term(self, hidden: Tensor, columns: Tensor | slice) -> Tensor:
        """Return e(h) of the tokens ``columns`` (T,): (T,), the same for all states, or for each of
        ``hidden`` (rows, width) log sigmoid((A h) . B_v + c_v), (rows, T)."""
        if self.bias is not None:
            return self.bias[columns]
        if self.A is None or self.B is None or self.c is None:
            return torch.zeros((), device=hidden.device)
        # Of a reduced precision little would be left: most of the terms are near 0.
        with torch.autocast(hidden.device.type, enabled=False):
            inner = hidden.to(self.A.dtype) @ self.A.t()
            return functional.logsigmoid(inner @ self.B[columns].t() + self.c[columns])


class _Edited(EditedHead):
    """Gives the logits that were edited: after the factor ``scale`` and the soft-cap ``cap``, which
    the model itself applies no longer."""

    def __init__(self, head: nn.Linear, cap: float | None, scale: float, edit: HeadEdit) -> None:
        super().__init__()
        self.head, self.cap, self.scale, self.edit = head, cap, scale, edit

    @property
    def weight(self) -> Tensor:
        """Return the weight (V, width) of the model's head."""
        return self.head.weight

    def forward(self, hidden: Tensor, columns: Tensor | None = None) -> Tensor:
        """Return the edited logits, at least in fp32."""
        logits = logits_of(self.head, self.cap, hidden, columns, self.scale)
        exact = torch.promote_types(logits.dtype, torch.float32)
        term = self.edit.logit_term(hidden, slice(None) if columns is None else columns)
        return logits.to(exact) / self.edit.temperature + self.edit.strength * term


def logit_scale(model: PreTrainedModel) -> float:
    """Return the factor by which a model multiplies what its head gives: Cohere has one, and
    Granite divides."""
    return float(getattr(model, "logit_scale", 1)) / getattr(model.config, "logits_scaling", 1)


def lay_over(model: PreTrainedModel, edit: HeadEdit) -> None:
    """Put an edit around the linear head of ``model``, in place, unless it changes nothing."""
    if float(edit.strength) == 0 and float(edit.temperature) == 1:
        return
    head = model.get_output_embeddings()
    name = next(name for name, module in model.named_modules() if module is head)
    cap, scale = soft_cap(model), logit_scale(model)
    model.set_submodule(name, _Edited(head, cap, scale, edit.to(head.weight.device)).eval())
    if cap is not None:
        model.config.final_logit_softcapping = None
    if scale != 1:
        model.logit_scale = model.config.logits_scaling = 1.0


def read_edit(path: Path) -> HeadEdit:
    """Return the edit in a file of ``Edited.tensors``."""
    tensors = {name.removeprefix(PREFIX): value for name, value in load_file(path).items()}
    return HeadEdit(tensors, float(tensors["strength"]), float(tensors["temperature"]))
