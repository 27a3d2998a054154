"""Low-rank adapters (Hu et al. 2021, LoRA): beside the frozen weight W of a linear module, s B A
with s = alpha / rank is trained.

The package peft, which is installed by choice, puts them into the model that is there: its class,
its blocks and its forward pass stay, and checkpoints and stored tensors hold the adapters alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from transformers import PreTrainedModel

from mamushi.errors import UserError

PREFIX = "lora_"
"""How peft begins the name of each part of an adapter."""
WHERE = "training.lora.target_modules"


def add(model: PreTrainedModel, settings: Mapping[str, Any]) -> None:
    """Put adapters into the model, in place, unless it has some; at first they change nothing.

    ``settings`` has ``rank``, ``alpha``, ``dropout`` and ``target_modules``, the names (or the ends
    of the names) of linear modules, None for all but the output head. A is drawn from PyTorch's
    random state, B is 0. Raises ``UserError`` without peft, and for modules that the model does not
    have or that cannot have an adapter.
    """
    if names(model):
        return
    try:
        import peft
    except ImportError:
        raise UserError(
            "low-rank adapters need the Python package peft, and there is none here",
            where="training.method",
            do="pip install 'mamushi[lora]'",
        ) from None
    wanted = settings["target_modules"]
    config = peft.LoraConfig(
        r=settings["rank"],
        lora_alpha=settings["alpha"],
        lora_dropout=settings["dropout"],
        target_modules="all-linear" if wanted is None else list(wanted),
        bias="none",
        # Only so does peft leave the output head out of all linear modules.
        task_type="CAUSAL_LM",
    )
    try:
        peft.inject_adapter_in_model(config, model)
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
    """Return the names of the adapters' parameters, in the model's order."""
    return [name for name, _ in model.named_parameters() if is_adapter(name)]


def is_adapter(name: str) -> bool:
    """Return whether a parameter of this name is part of an adapter."""
    return any(part.startswith(PREFIX) for part in name.split("."))


def merge(model: PreTrainedModel) -> None:
    """Add each adapter to the weight beside it, in fp32, in place, and take it out of the model."""
    if not names(model):
        return
    from peft.tuners.tuners_utils import BaseTunerLayer

    for name, module in list(model.named_modules()):
        if isinstance(module, BaseTunerLayer):
            # Rounded to bf16, W + s B A is mostly W.
            module.get_base_layer().float()
            module.merge()
            model.set_submodule(name, module.get_base_layer())
