"""Unlearning of tiny models as tests begin it."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel

from mamushi.lm import device, loading, sharding
from mamushi.lm.parameters import freeze
from mamushi.lm.storage import Checkpoint
from mamushi.lm.tokens import TokenSet
from mamushi.registry import plugin, plugins
from mamushi.unlearning.loop import Outcome, Unlearning
from tests.support.models import ENDS_FROZEN, model, token_set, training_of

KINDS = tuple(name for name, kind in plugins("unlearner").items() if kind.trains)
"""Those that take steps."""

BLOCKS = {"trained_blocks": 2, **ENDS_FROZEN}

LOOP = {
    "epochs": 5.0,
    "batch_size": 4,
    "betas": [0.0, 0.999],
    "epsilon": 1e-8,
    "weight_decay": 0.01,
    "gradient_clip": 0.5,
    "stop_window": 3,
    "steps": "by_data",
}

EXECUTION = {"micro_batch_size": 16, "batch_tokens": 64, "checkpoint_seconds": 0.0}


def texts_of(domain: str, count: int, seed: int, longest: int = 14) -> TokenSet:
    """Random texts of one domain, whose ids begin with its name."""
    found = token_set(count, seed, longest)
    ids = np.array([f"{domain}{name}" for name in found.ids], dtype=object)
    return TokenSet(ids, np.full(count, domain, dtype=object), found.tokens, found.offsets)


def start(family: str = "llama", precision: str = "fp32", layers: int = 3) -> PreTrainedModel:
    """A start model with its last two blocks to be trained."""
    found = model(family, layers=layers)
    freeze(found, training_of(BLOCKS))
    return loading.place_model(found, precision, torch.device("cpu"))


def run(
    kind: str,
    language_model: PreTrainedModel | None = None,
    forget: TokenSet | None = None,
    retain: TokenSet | None = None,
    *,
    total: int = 6,
    state: Path | None = None,
    precision: str = "fp32",
    training: dict[str, Any] | None = None,
    special: frozenset[int] = frozenset(),
    micro: int = 16,
    all_forget: TokenSet | None = None,
    **changes: Any,
) -> tuple[PreTrainedModel, Outcome]:
    """Unlearn with an unlearner's defaults, but for a learning rate that suits a tiny model."""
    settings = plugin("unlearner", kind).defaults | {"learning_rate": 1e-3} | changes
    if "stop_forget_loss" in settings and "stop_forget_loss" not in changes:
        # The tiny models start with higher losses than the limit for real ones.
        settings["stop_forget_loss"] = None
    language_model = start(precision=precision) if language_model is None else language_model
    accelerator = device.accelerator(precision)
    sharding.shard(language_model, accelerator)
    unlearning = Unlearning(
        language_model,
        texts_of("forget", 11, 1) if forget is None else forget,
        texts_of("retain", 17, 2) if retain is None else retain,
        {"kind": kind, "settings": settings, "training": LOOP | (training or {})},
        EXECUTION | {"micro_batch_size": micro},
        seed=3,
        accelerator=accelerator,
        special=special,
        all_forget=all_forget,
    )
    return language_model, unlearning.run(total, state and Checkpoint(state, "a"))


def weights(language_model: PreTrainedModel) -> dict[str, torch.Tensor]:
    """All weights, brought together where the model is cut over processes."""
    parameters = language_model.named_parameters()
    return {name: sharding.full_tensor(p.detach()).clone() for name, p in parameters}
