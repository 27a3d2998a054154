"""Low-rank adapters: beside the frozen weight W of a layer, s B A with s = alpha / rank is trained.

Hu et al. (2021), LoRA: Low-Rank Adaptation of Large Language Models. The package peft, which is
installed by choice, puts them into the model that is there: its class, its blocks and its forward
pass stay, so that texts share rows, and checkpoints and stored tensors hold the adapters alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from transformers import PreTrainedModel

from mamushi.errors import UserError

PREFIX = "lora_"
"""How peft begins the name of each part of an adapter."""
WHERE = "training.lora.target_modules"


def add(model: PreTrainedModel, settings: Mapping[str, Any]) -> None:
    """Put adapters into the model, in place, unless it has some; at first they change nothing.

    ``settings`` has ``rank``, ``alpha``, ``dropout`` and ``target_modules``, the names (or the ends
    of the names) of layers, None for all linear layers but the output head. A is drawn from
    PyTorch's random state, B is 0. Raises ``UserError`` without peft, and for layers that the model
    does not have or that cannot have an adapter.
    """
    if names(model):
        return
    peft = _peft()
    wanted = settings["target_modules"]
    chosen = peft.LoraConfig(
        r=settings["rank"],
        lora_alpha=settings["alpha"],
        lora_dropout=settings["dropout"],
        target_modules="all-linear" if wanted is None else list(wanted),
        bias="none",
        # Only so does peft leave the output head out of all linear layers.
        task_type="CAUSAL_LM",
    )
    try:
        peft.inject_adapter_in_model(chosen, model)
    except ValueError as error:
        text = " ".join(str(error).split())
        raise UserError(text, where=WHERE, do="name linear layers of the model's blocks") from None
    for module in wanted or ():
        if not any(f".{module}.{PREFIX}" in f".{name}" for name in names(model)):
            raise UserError(
                f"the model has no layer {module!r}",
                where=WHERE,
                do="name layers as the model does, or give null for all linear ones",
            )


def names(model: PreTrainedModel) -> list[str]:
    """Names of the adapters' parameters, in the model's order; none without adapters."""
    return [name for name, _ in model.named_parameters() if is_adapter(name)]


def is_adapter(name: str) -> bool:
    """Whether a parameter of this name is part of an adapter."""
    return any(part.startswith(PREFIX) for part in name.split("."))


def merge(model: PreTrainedModel) -> None:
    """Add each adapter to the weight beside it, in fp32, in place, and take it out of the model."""
    if not names(model):
        return
    layers = _peft().tuners.tuners_utils.BaseTunerLayer
    found = [(n, module) for n, module in model.named_modules() if isinstance(module, layers)]
    for name, layer in found:
        # Rounded to bf16, W + s B A is mostly W.
        layer.get_base_layer().float()
        layer.merge()
        model.set_submodule(name, layer.get_base_layer())


def _peft() -> ModuleType:
    try:
        import peft
    except ImportError:
        raise UserError(
            "low-rank adapters need the Python package peft, and there is none here",
            where="training.method",
            do="pip install 'mamushi[lora]'",
        ) from None
    found: ModuleType = peft
    return found
