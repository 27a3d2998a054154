"""The tensors that were trained, in a file of their own: stored, loaded, and put into a model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from transformers import PreTrainedModel

from mamushi.errors import UserError
from mamushi.io.files import atomic
from mamushi.io.tensors import header, trained_metadata
from mamushi.lm import head, parameters, sharding
from mamushi.running import launch

# How safetensors, written in Rust, reports a full disk.
OS_ERROR = re.compile(r"os error (\d+)")


def save_trained(path: str | Path, model: PreTrainedModel, metadata: Mapping[str, Any]) -> None:
    """Store the tensors that take gradients, in fp32, whole or not at all, with ``metadata``
    (JSON). Of several processes the first one stores; where the model is sharded, all have to
    call."""
    tensors: dict[str, torch.Tensor] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            gathered = sharding.full_tensor(parameter.detach())
            # One at a time: no GPU holds all of them.
            tensors |= {} if launch.is_secondary() else {name: gathered.to("cpu", torch.float32)}
    write(path, tensors, header(metadata))


def save_edit(path: str | Path, edit: head.HeadEdit, metadata: Mapping[str, Any]) -> None:
    """Store an edit of a model's logits, and nothing of the model, as ``save_trained`` does."""
    tensors = edit.state_dict(prefix=head.EDIT_PREFIX)
    write(path, {name: tensor.cpu() for name, tensor in tensors.items()}, header(metadata))


def write(path: str | Path, tensors: Mapping[str, torch.Tensor], header: dict[str, str]) -> None:
    """Write a safetensors file whole or not at all, from the first process of a job."""
    if not launch.is_secondary():
        with atomic(path) as partial, writing_safetensors():
            save_file({n: t.contiguous() for n, t in tensors.items()}, partial, metadata=header)


@contextmanager
def writing_safetensors() -> Iterator[None]:
    """Turn a system error that safetensors wraps (a full disk, above all) back into ``OSError``."""
    try:
        yield
    except SafetensorError as error:
        code = OS_ERROR.search(str(error))
        if code is None:
            raise
        raise OSError(int(code[1]), str(error)) from error


def overlay(path: str | Path, model: PreTrainedModel) -> head.HeadEdit | None:
    """Put the tensors of a file into ``model``, in fp32, with gradients; of an edit of its logits
    change nothing, and return that, for ``head.lay_over``. Adapters stay beside the weights until
    ``parameters.merge_adapters``. Raises ``UserError``, and changes no tensor, when the model has
    no such tensor, or of another shape."""
    with safe_open(path, framework="pt") as stored:
        names = sorted(stored.keys())
        if f"{head.EDIT_PREFIX}strength" in names:
            tensors = {n.removeprefix(head.EDIT_PREFIX): stored.get_tensor(n) for n in names}
            return head.HeadEdit(tensors, float(tensors["strength"]), float(tensors["temperature"]))
        if any(map(parameters.is_adapter, names)):
            settings = trained_metadata(path)["settings"]
            # Of a fine-tune, or of unlearning, whose own training says nothing of adapters.
            parameters.add_adapters(model, settings.get("lora") or settings["training"]["lora"])
        named = dict(model.named_parameters())
        for name in names:
            shape = tuple(stored.get_slice(name).get_shape())
            if name not in named or shape != named[name].shape:
                problem = f"{name} is {shape}, and the model has no such tensor"
                raise UserError(problem, where=path)
        for name in names:
            named[name].data = stored.get_tensor(name).float()
            named[name].requires_grad_(True)
    return None
