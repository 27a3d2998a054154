"""Which parameters are trained: the last blocks, the input embedding and the output head.

"Contamination fine-tunes only the last three transformer blocks, together with the input and output
embedding layers; all other parameters are frozen" (the paper, Phase 1). The norm after the last
block belongs to neither, so it stays frozen. Other methods than the paper's
train all parameters, or low-rank adapters alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from torch import nn
from transformers import PreTrainedModel

from mamushi.errors import UserError
from mamushi.lm import lora


class Counts(NamedTuple):
    """Numbers of parameters; a tensor that two modules share counts once."""

    all: int
    trained: int


def decoder_blocks(model: PreTrainedModel) -> tuple[str, nn.ModuleList]:
    """Return name and list of the transformer blocks, first block first.

    Architectures call it ``model.layers``, ``transformer.h``, ``gpt_neox.layers``...: it is the
    outermost ``ModuleList`` with as many modules as the configuration has hidden layers.
    Raises ``UserError`` for a model without such a list.
    """
    blocks = model.config.get_text_config(decoder=True).num_hidden_layers
    lists = [
        (name, module)
        for name, module in model.named_modules()
        if isinstance(module, nn.ModuleList) and len(module) == blocks
    ]
    if not lists:
        raise UserError(
            f"found no list of {blocks} transformer blocks",
            where=type(model).__name__,
            do="use a decoder-only model of the transformers library",
        )
    return min(lists, key=lambda found: found[0].count("."))


def trained_names(model: PreTrainedModel, settings: Mapping[str, Any]) -> list[str]:
    """Return the names of the parameters to train, in the order of ``model.named_parameters()``.

    ``settings`` holds the ``method``: ``full`` trains all, ``lora`` the adapters that the model
    has, and ``partial``, the default, goes by ``trained_blocks`` (how many of the last blocks, 0 or
    more), ``train_input_embedding`` and ``train_output_head``. A tied head is
    the input embedding under another name: it appears once, and is trained when either of the two
    is. Raises ``UserError`` when the model has fewer blocks than asked for.
    """
    method = settings.get("method", "partial")
    if method == "full":
        return [name for name, _ in model.named_parameters()]
    if method == "lora":
        return lora.names(model)
    _, blocks = decoder_blocks(model)
    wanted = settings["trained_blocks"]
    if wanted > len(blocks):
        raise UserError(
            f"asks for {wanted} blocks, but the model has {len(blocks)}",
            where="training.trained_blocks",
            do=f"set it to {len(blocks)} or fewer",
        )
    modules: list[nn.Module | None] = [*blocks[len(blocks) - wanted :]]
    if settings["train_input_embedding"]:
        modules.append(model.get_input_embeddings())
    if settings["train_output_head"]:
        modules.append(model.get_output_embeddings())
    # By identity and not by name, so that a tied tensor is found under whichever name it has.
    trained = {id(p) for module in modules if module is not None for p in module.parameters()}
    return [name for name, parameter in model.named_parameters() if id(parameter) in trained]


def freeze(model: PreTrainedModel, settings: Mapping[str, Any]) -> list[str]:
    """Let gradients flow into the parameters of ``trained_names`` alone; return those names. The
    method ``lora`` first puts the adapters of ``settings["lora"]`` into a model without any."""
    if settings.get("method") == "lora":
        lora.add(model, settings["lora"])
    names = trained_names(model, settings)
    trained = set(names)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name in trained)
    return names


def count(model: nn.Module) -> Counts:
    """Count the parameters of the model, and those of them that take gradients."""
    sizes = [(p.numel(), p.requires_grad) for p in model.parameters()]
    return Counts(sum(n for n, _ in sizes), sum(n for n, trained in sizes if trained))
